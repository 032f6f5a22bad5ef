import Foundation
import ReelBase
import ReelCore
import ReelSQLite
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Files that are not a store, and stores that this user or this version cannot use.
@Suite(.timeLimit(.minutes(5))) struct StoreTroubleTests {
    @Test("an empty file becomes a new store")
    func anEmptyFileIsANewStore() throws {
        let path = temporaryPath()
        defer { removeStore(path) }
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        #expect(try DeviceStore(path: path).queued().isEmpty)
    }

    @Test("a client does not change another program's file")
    func anotherProgramsFile() throws {
        let (path, database) = (temporaryPath(), temporaryPath())
        defer { for path in [path, database] { removeStore(path) } }
        try Data("a letter".utf8).write(to: URL(filePath: path))
        try expect(.storeFormat, from: path)
        try Data(repeating: 7, count: 9_000).write(to: URL(filePath: path))
        try expect(.storeFormat, from: path)
        for format in [0, 1, 2, 7] {
            removeStore(database)
            try Connection(path: database, mode: .create).execute(
                "CREATE TABLE stream (x); PRAGMA user_version = \(format)"
            )
            try expect(.storeFormat, from: database)
        }
    }

    @Test("a client does not change a store of a newer format, and the error names both formats")
    func aNewerFormat() throws {
        let path = temporaryPath()
        defer { removeStore(path) }
        _ = try DeviceStore(path: path)
        try Connection(path: path, mode: .readWrite).execute("PRAGMA user_version = \(StorageFormat.number + 1)")
        let error = try expect(.storeFormat, from: path)
        #expect(error?.message.contains("found format \(StorageFormat.number + 1)") == true)
        #expect(error?.message.contains("expected up to \(StorageFormat.number)") == true)
    }

    @Test(
        "a client reports an unusable store path at once, with a remedy",
        arguments: ["", "/nowhere/at/all/store.reel", "/dev/null", "/tmp", "/dev/null/store.reel", "a\0b"]
    )
    func unusableStorePath(path: String) {
        let error = #expect(throws: ReelError.self) { try DeviceStore(path: path) }
        #expect(error?.code == .storeFailed, "\(error.debugDescription)")
    }

    @Test(
        "a client reports a read-only store file at once",
        .enabled(if: getuid() != 0 || hasSetpriv, "setpriv is missing: apt-get install util-linux")
    )
    func readOnlyStore() throws {
        let folder = temporaryPath()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o777]
        )
        let path = folder + "/store.reel"
        _ = try DeviceStore(path: path)
        try FileManager.default.setAttributes([.posixPermissions: 0o444], ofItemAtPath: path)
        let said = try list(path, isAnotherUser: true)
        #expect(said.contains("this user may not read and write \(path) (store_failed)"), "\(said)")
        // No file can be made in this folder.
        try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: path)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder)
        #expect(try list(path, isAnotherUser: true).contains("this user may not write in the folder \(folder)"))
    }

    @Test("two clients or two processes cannot open one store at the same time")
    func twoClientsOfOneStore() async throws {
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try SyncClient(nodes: [], store: .file(path), transport: try FakeNetwork())
        let error = #expect(throws: ReelError.self) { try DeviceStore(path: path) }
        #expect(error?.code == .storeBusy)
        #expect(try list(path).contains("(store_busy)"))
        try await client.open("todo").publish(.insert("task", id: "1"))
        await client.close()
        #expect(try !list(path).contains("store_"))
    }

    @Test("damaged bytes of a file never cause a trap, and unreadable data is an error of the store")
    func damagedBytes() async throws {
        let (path, copy) = (temporaryPath(), temporaryPath())
        defer { for path in [path, copy] { removeStore(path) } }
        let network = try FakeNetwork()
        try await network.on { network in for id in 0..<30 { network.author(.insert("m", id: "\(id)", ["a": "text"])) }
        }
        do {
            let client = try network.client(store: .file(path))
            let stream = try await client.open("s")
            try await stream.publish(
                .update("m", id: "1", operations: ["a": .splice([TextSplice(at: 1, removing: 2, inserting: "xyz")])])
            ).outcome()
            try await network.on { $0.kill("a") }
            try await stream.publish(.insert("m", id: "own"))
            await client.close()
        }
        let whole = try Data(contentsOf: URL(filePath: path))
        try await Seeds.runAsync(150) { seed in
            var random = SeededGenerator(seed: seed)
            removeStore(copy)
            var bytes = whole
            for _ in 0..<Int.random(in: 1...40, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            if Int.random(in: 0..<8, using: &random) == 0 {
                bytes = bytes.prefix(Int.random(in: 0..<bytes.count, using: &random))
            }
            try bytes.write(to: URL(filePath: copy))
            do {
                let client = try SyncClient(nodes: [], store: .file(copy), transport: network)
                let stream = try await client.open("s")
                _ = try stream.objects("m")
                try await stream.publish(.insert("m", id: "2"))
                await client.close()
            } catch let error as ReelError {
                #expect(error.code.rawValue.hasPrefix("store_"), "seed \(seed): \(error)")
            }
        }
    }

    @discardableResult
    private func expect(_ code: ErrorCode, from path: String) throws -> ReelError? {
        let before = try Data(contentsOf: URL(filePath: path))
        let error = #expect(throws: ReelError.self) { try DeviceStore(path: path) }
        #expect(error?.code == code, "\(error.debugDescription)")
        #expect(try Data(contentsOf: URL(filePath: path)) == before)
        return error
    }

    /// Returns the output and the errors of the example's `list`.
    private func list(_ path: String, isAnotherUser: Bool = false) throws -> String {
        let process = Process()
        let example = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appendingPathComponent("example-todo")
        process.executableURL = example
        process.arguments = ["--store", path, "list"]
        if isAnotherUser, getuid() == 0 {
            process.executableURL = URL(fileURLWithPath: Self.setpriv)
            process.arguments = ["--reuid=65534", "--clear-groups", example.path, "--store", path, "list"]
        }
        let output = Pipe()
        (process.standardOutput, process.standardError) = (output, output)
        try process.run()
        let said = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return String(decoding: said, as: UTF8.self)
    }

    private static let setpriv = "/usr/bin/setpriv"
    private static var hasSetpriv: Bool { FileManager.default.isExecutableFile(atPath: setpriv) }
}
