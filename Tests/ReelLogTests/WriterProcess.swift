import Foundation
import ReelCore
import Testing

/// A process that appends to a log until it has finished or is killed.
final class WriterProcess {
    /// A record that the log has acknowledged to the process.
    struct Acked: Hashable {
        var partition: Int
        var seq: Seq
        var record: String
    }

    private let process = Process()
    private let output: String

    init(_ folder: String, name: String, count: Int, checkpointFrames: Int = 4, descriptors: Int? = nil) throws {
        output = folder + "/\(name).out"
        guard FileManager.default.createFile(atPath: output, contents: nil) else { throw CocoaError(.fileWriteUnknown) }
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let writer = URL(fileURLWithPath: own).deletingLastPathComponent().appending(path: "log-writer").path
        let limit = descriptors.map { "ulimit -n \($0); " } ?? ""
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = [
            "-c", limit + "exec \"$0\" \"$@\"", writer, folder + "/log.db", "\(checkpointFrames)", name, "\(count)",
        ]
        process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
        try process.run()
    }

    deinit {
        kill()
    }

    var isRunning: Bool { process.isRunning }

    func kill() {
        if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) }
    }

    /// The complete lines that the process has printed.
    var lines: [String] {
        get throws {
            let text = try String(contentsOfFile: output, encoding: .utf8)
            return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
        }
    }

    var acked: [Acked] {
        get throws {
            try lines.compactMap { line in
                let parts = line.split(separator: " ")
                guard parts.count == 3, let partition = Int(parts[0]), let seq = Seq(parts[1]) else { return nil }
                return Acked(partition: partition, seq: seq, record: String(parts[2]))
            }
        }
    }
}
