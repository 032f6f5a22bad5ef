import Foundation
import ReelCore
import ReelSQLite
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Stores that are removed, replaced, moved or cut under a running client.
@Suite(.timeLimit(.minutes(5))) struct LostStoreTests {
    @Test("a client notices a lost store at the next commit, and publish throws", arguments: FileLoss.allCases)
    func aLossIsNoticed(loss: FileLoss) async throws {
        let place = try LosableFile()
        let network = try FakeNetwork()
        let client = try SyncClient(nodes: [], store: .file(place.path), transport: network)
        var notices = await client.notices().makeAsyncIterator()
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "promised"))
        try place.apply(loss)
        let opening = await #expect(throws: ReelError.self) { try await client.open("another") }
        #expect(opening?.code == .storeLost, "\(opening.debugDescription)")
        for _ in 0..<2 {
            let error = await #expect(throws: ReelError.self) { try await stream.publish(.insert("m", id: "later")) }
            #expect(error?.code == .storeLost, "\(error.debugDescription)")
        }
        guard case .storeFailed = await notices.next() else { throw Wrong() }
        #expect(client.status.problems.map(\.code) == [.storeLost])
        await client.close()
        try place.putBack(loss)
        guard loss.keepsCommits else { return }
        let next = try SyncClient(nodes: [], store: .file(place.path), transport: network)
        #expect(try await next.open("s").objects("m").map(\.name.id) == ["promised"])
        await next.close()
    }

    @Test("a process confirms no events after its store is removed, and reports why")
    func removedStore() throws {
        let path = temporaryPath()
        defer { removeStore(path) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appendingPathComponent("example-todo")
        process.arguments = ["--store", path, "feed"]
        let (input, output, errors) = (Pipe(), Pipe(), Pipe())
        (process.standardInput, process.standardOutput, process.standardError) = (input, output, errors)
        try process.run()
        try input.fileHandleForWriting.write(contentsOf: Data("one\n".utf8))
        var said = Data()
        while !said.contains(UInt8(ascii: "\n")) {
            let piece = output.fileHandleForReading.availableData
            guard !piece.isEmpty else { throw Wrong() }
            said += piece
        }
        removeStore(path)
        try input.fileHandleForWriting.write(contentsOf: Data("two\n".utf8))
        try input.fileHandleForWriting.close()
        let more = try output.fileHandleForReading.readToEnd() ?? Data()
        let reason = String(decoding: try errors.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        process.waitUntilExit()
        #expect(more.isEmpty, "nothing is promised that the next start does not find")
        #expect(reason.contains("(store_lost)"), "\(reason)")
        #expect(process.terminationStatus != 0)
    }

    @Test("a store in a renamed folder that is back before the next commit is not lost")
    func aRenamedFolderThatIsBack() async throws {
        let place = try LosableFile()
        let client = try SyncClient(nodes: [], store: .file(place.path), transport: try FakeNetwork())
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "1"))
        try place.apply(.folderRenamed)
        try place.putBack(.folderRenamed)
        try await stream.publish(.insert("m", id: "2"))
        await client.close()
    }

    @Test("a temporary second name of the store's file is not a loss")
    func aHardLinkIsNoLoss() async throws {
        let place = try LosableFile()
        let client = try SyncClient(nodes: [], store: .file(place.path), transport: try FakeNetwork())
        let stream = try await client.open("s")
        try FileManager.default.linkItem(atPath: place.path, toPath: place.folder + "/link")
        try await stream.publish(.insert("m", id: "1"))
        let error = #expect(throws: ReelError.self) { try DeviceStore(path: place.folder + "/link") }
        #expect(error?.code == .storeBusy)
        try FileManager.default.removeItem(atPath: place.folder + "/link")
        try await stream.publish(.insert("m", id: "2"))
        await client.close()
    }

    @Test("a commit during which the files are removed confirms nothing")
    func filesRemovedDuringACommit() throws {
        let place = try LosableFile()
        let store = try DeviceStore(path: place.path)
        let error = #expect(throws: ReelError.self) {
            try store.commit(durably: true) { (changes) throws(ReelError) in
                changes.put([1], [1])
                try? FileManager.default.removeItem(atPath: place.path)
            }
        }
        #expect(error?.code == .storeLost)
    }

    @Test("a client reports the lost WAL of a killed process once, at the next start")
    func reportsLostWAL() async throws {
        let (killed, copy) = (try LosableFile(), try LosableFile())
        let network = try FakeNetwork()
        let client = try SyncClient(nodes: [], store: .file(killed.path), transport: network)
        try await client.open("s").publish(.insert("m", id: "1"))
        // The files that a killed process leaves, without the WAL and with it.
        try FileManager.default.copyItem(atPath: killed.path, toPath: copy.path)
        do {
            let next = try SyncClient(nodes: [], store: .file(copy.path), transport: network)
            var notices = await next.notices().makeAsyncIterator()
            guard case .storeLost = await notices.next() else { throw Wrong() }
            #expect(next.status.problems.map(\.code) == [.storeLost], "not only as one notice")
            try await next.open("s").publish(.insert("m", id: "2"))
            await next.close()
            #expect(await notices.next() == nil)
        }
        for ending in ["", "-wal"] {
            try? FileManager.default.removeItem(atPath: copy.path + ending)
            if ending == "-wal" {
                #expect(try DeviceStore(path: copy.path).hasLostCommits == false, "a new file has lost nothing")
                try FileManager.default.removeItem(atPath: copy.path)
            }
        }
        for ending in ["", "-wal"] {
            try? FileManager.default.removeItem(atPath: copy.path + ending)
            try FileManager.default.copyItem(atPath: killed.path + ending, toPath: copy.path + ending)
        }
        #expect(try DeviceStore(path: copy.path).hasLostCommits == false, "nothing is missing")
        #expect(try DeviceStore(path: copy.path).queued() == ["s": 1])
        await client.close()
        #expect(try DeviceStore(path: killed.path).hasLostCommits == false, "a closed file needs no WAL")
    }

    @Test("a client keeps a WAL without its database file, and its init reports the path", arguments: [nil, 0])
    func walWithoutFile(size: UInt64?) async throws {
        let (killed, copy) = (try LosableFile(), try LosableFile())
        let client = try SyncClient(nodes: [], store: .file(killed.path), transport: try FakeNetwork())
        try await client.open("s").publish(.insert("m", id: "1"))
        try FileManager.default.copyItem(atPath: killed.path + "-wal", toPath: copy.path + "-wal")
        if size == 0 { #expect(FileManager.default.createFile(atPath: copy.path, contents: nil)) }
        let wal = try Data(contentsOf: URL(filePath: copy.path + "-wal"))
        let error = #expect(throws: ReelError.self) { try DeviceStore(path: copy.path) }
        #expect(error?.code == .storeLost && error?.message.contains("-wal") == true)
        #expect(try Data(contentsOf: URL(filePath: copy.path + "-wal")) == wal)
        await client.close()
    }
}
