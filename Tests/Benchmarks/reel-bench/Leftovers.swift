import Foundation
import ReelLab
import ReelNet
import Synchronization

/// The servers and files of the benchmarks. They are removed at the end of the run, also if it is interrupted.
enum Leftovers {
    private static let servers = Mutex(Set<Int32>())
    /// The folder of all files of the run.
    static let folder = FileManager.default.temporaryDirectory.path + "/reel-bench-\(getpid())"

    /// Creates the folder, and handles the signals that end the run.
    static func begin() throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        let loop = try EventLoop()
        try loop.sync {
            for signal in [SIGINT, SIGTERM, SIGHUP] {
                loop.onSignal(signal) {
                    end()
                    _exit(128 + signal)
                }
            }
        }
    }

    /// Kills the servers and removes the files.
    static func end() {
        servers.withLock { servers in
            for server in servers {
                kill(server, SIGKILL)
                waitpid(server, nil, 0)
            }
        }
        // An interrupted benchmark may remove its own files at the same moment, which makes the removal of the folder
        // fail.
        for _ in 0..<10 where FileManager.default.fileExists(atPath: folder) {
            try? FileManager.default.removeItem(atPath: folder)
        }
    }

    /// Registers a process that must not outlive the run. `ended` removes it again.
    static func started(_ pid: Int32) { servers.withLock { _ = $0.insert(pid) } }
    static func ended(_ pid: Int32) { servers.withLock { _ = $0.remove(pid) } }
}

/// Runs `body` with a new folder, and removes the folder afterwards.
func withFolder<R>(_ body: (String) throws -> R) throws -> R {
    let path = try newFolder()
    defer { try? FileManager.default.removeItem(atPath: path) }
    return try body(path)
}

/// Runs `body` with a new folder, and removes the folder afterwards.
func withFolder<R>(_ body: (String) async throws -> R) async throws -> R {
    let path = try newFolder()
    defer { try? FileManager.default.removeItem(atPath: path) }
    return try await body(path)
}

private func newFolder() throws -> String {
    let path = Leftovers.folder + "/\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    return path
}

/// Runs `reel` of the same build with these arguments on a free port, calls `body` with it, and then kills it.
func withReel<R>(_ arguments: [String], in folder: String, _ body: (LocalNode) async throws -> R) async throws -> R {
    let own = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    let reel = own.deletingLastPathComponent().appending(path: "reel").path
    guard FileManager.default.isExecutableFile(atPath: reel) else {
        throw BenchmarkError("\(reel) is not there: `make bench` builds it")
    }
    let node = try LocalNode(name: arguments[0], reel: reel, arguments: arguments, folder: folder)
    Leftovers.started(node.process.pid)
    defer {
        node.process.killNow()
        Leftovers.ended(node.process.pid)
    }
    return try await body(node)
}
