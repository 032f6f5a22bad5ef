import Foundation
import ReelCore
import ReelSQLite
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// A user signs out, and nothing of the account stays on the device. `EndedSiteTests` has what the streams see.
@Suite(.timeLimit(.minutes(5))) struct SignOutTests {
    private static let endings = ["", "-wal", "-shm", "-lock", "-journal"]

    private func files(_ path: String) -> [String] {
        Self.endings.filter { FileManager.default.fileExists(atPath: path + $0) }
    }

    @Test("signing out is refused with the number of events and their streams, and changes nothing")
    func refuses() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try network.client(nodes: [], store: .file(path, user: "ann"))
        let streams = (try await client.open("s"), try await client.open("t"))
        try await streams.0.publish(.insert("m", id: "1"))
        try await streams.1.publish(.insert("m", id: "1"))
        try streams.1.enqueue(.insert("m", id: "2"))
        await streams.1.close()
        let error = await #expect(throws: ReelError.self) { try await client.signOut() }
        #expect(error?.code == .storeWaits)
        #expect(error?.message.hasSuffix("discard them with `signOut(ifWaiting: .erase)`") == true)
        #expect(error?.message.contains("3 own events that wait (s: 1, t: 2)") == true, "\(error!)")
        #expect(try streams.0.objects("m").count == 1)
        #expect(try await client.streams().map(\.pendingCount) == [1, 2])
        for number in 0..<20 { try await client.open("u\(number)").publish(.insert("m", id: "1")) }
        let many = await #expect(throws: ReelError.self) { try await client.signOut(ifWaiting: .refuse) }
        #expect(many?.message.contains("23 own events") == true && many?.message.contains("12 other streams") == true)
        let waiting = Task { try await streams.0.waitUntil(seq: 5) }
        let reading = Task { for await _ in await streams.0.changes() {} }
        #expect(try await client.signOut(ifWaiting: .erase) == [])
        let ended = await #expect(throws: ReelError.self) { try await waiting.value }
        #expect(ended?.code == .closed)
        await reading.value
        #expect(files(path) == [])
        #expect(throws: ReelError.closed) { try streams.0.objects("m") }
        await #expect(throws: ReelError.closed) { try await client.signOut() }
        // Another user begins with nothing.
        let next = try network.client(store: .file(path, user: "bob"))
        #expect(try await next.streams().isEmpty)
        await next.close()
    }

    @Test("a store with a damaged stream or a damaged event is erased too", arguments: ["q", "s"])
    func damaged(kind: String) async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let first = try network.client(nodes: [], store: .file(path, user: "ann"))
        for name in ["s", "t"] { try await first.open(name).publish(.insert("m", id: "1")) }
        await first.close()
        do {
            let connection = try Connection(path: path, mode: .readWrite, busyMs: 5_000)
            try connection.execute(
                """
                UPDATE pair SET \(StoredStateTests.Damage.flipped.change)
                WHERE key = (SELECT max(key) FROM pair WHERE substr(key, 1, 1) = CAST('\(kind)' AS BLOB))
                """
            )
            #expect(connection.changes == 1)
        }
        let client = try network.client(nodes: [], store: .file(path, user: "ann"))
        try await client.signOut(ifWaiting: .erase)
        #expect(files(path) == [])
        await #expect(throws: ReelError.self) { try await client.open("s") }
    }

    @Test("a device that is killed at any write of it is whole, or empty for every user")
    func killed() async throws {
        let network = try FakeNetwork()
        let whole = MemoryStorage()
        let first = try network.client(store: .storage(StoppingStorage(whole), user: "ann"))
        for name in ["s", "t"] { try await first.open(name).publish(.insert("m", id: "1")).outcome() }
        try await network.on { network in
            network.down = ["a"]
            network.kill("a")
        }
        try await first.open("t").publish(.insert("m", id: "2"))
        await first.close()
        var kills = 0
        while kills < 100 {
            let storage = try whole.copy()
            let stopping = StoppingStorage(storage)
            let client = try network.client(store: .storage(stopping, user: "ann"))
            _ = try await client.open("s")
            try await eventually { await client.isTidy }
            stopping.stop(after: kills)
            let staying = try? await client.signOut(ifWaiting: .erase, deadline: .zero)
            #expect((staying == nil) == stopping.isOver)
            await client.close()
            for user in ["bob", "ann"] where kills > 0 {
                let next = try network.client(store: .storage(StoppingStorage(try storage.copy()), user: user))
                #expect(try await next.streams().isEmpty, "after \(kills) writes")
                await next.close()
            }
            if kills == 0 {
                #expect(throws: ReelError.self) { try network.client(store: .storage(storage, user: "bob")) }
                let next = try network.client(store: .storage(StoppingStorage(storage), user: "ann"))
                #expect(try await next.streams() == [.init(id: "s", pendingCount: 0), .init(id: "t", pendingCount: 1)])
                #expect(try await next.open("t").objects("m").count == 2)
                await next.close()
            }
            if !stopping.isOver { break }
            kills += 1
        }
        #expect(kills > 1 && kills < 100)
    }

    @Test("a file whose process was killed while it signed out is deleted at the next start", arguments: [true, false])
    func killedFile(hasWAL: Bool) async throws {
        let network = try FakeNetwork()
        let (path, copy) = (temporaryPath(), temporaryPath())
        defer { for path in [path, copy] { removeStore(path) } }
        do {
            let client = try network.client(nodes: [], store: .file(path, user: "ann"))
            try await client.open("s").publish(.insert("m", id: "secret"))
            await client.close()
        }
        let store = try DeviceStore(path: path)
        try store.signOut()
        if !hasWAL { store.storage.close() }
        for ending in Self.endings {
            try? FileManager.default.copyItem(atPath: path + ending, toPath: copy + ending)
        }
        #expect(files(copy).contains("-wal") == hasWAL)
        store.storage.close()
        let client = try network.client(store: .file(copy, user: "bob"))
        #expect(try await client.streams().isEmpty)
        #expect(client.status.problems.isEmpty)
        await client.close()
        let bytes = try Data(contentsOf: URL(fileURLWithPath: copy))
        #expect(bytes.range(of: Data("secret".utf8)) == nil)
        // A file of nobody cannot be given away by its former user.
        let error = #expect(throws: ReelError.self) { try SyncClient.adopt(store: path, from: "ann", to: "carl") }
        #expect(error?.code == .storeUser)
    }

    @Test("a client that is closed while it signs out deletes the store too", arguments: [true, false])
    func closing(twice: Bool) async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try network.client(store: .file(path, user: "ann"))
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "1")).outcome()
        try await network.on { ($0.dropsAcks, $0.isSilent, $0.heldPauses) = (true, true, [10_000]) }
        let leaving = Task { try await client.signOut() }
        try await eventually { try await network.on { !$0.deadlines.isEmpty } }
        await #expect(throws: ReelError.self) { try await stream.publish(.insert("m", id: "2")) }
        if twice { await #expect(throws: ReelError.closed) { try await client.signOut() } }
        #expect(throws: ReelError.self) { try network.client(store: .file(path, user: "ann")) }
        await client.close()
        #expect(files(path) == [])
        #expect(try await leaving.value == ["s"])
    }

    @Test("a client whose store failed while it signed out reports that, and the next one finds nothing")
    func failing() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try network.client(store: .file(path, user: "ann"))
        try await client.open("s").publish(.insert("m", id: "1")).outcome()
        try await network.on { ($0.dropsAcks, $0.isSilent, $0.heldPauses) = (true, true, [10_000]) }
        let leaving = Task { try await client.signOut() }
        try await eventually { try await network.on { !$0.deadlines.isEmpty } }
        let failure = ReelError(.storeFull, "found no room")
        try await network.on { _ in client.assumeIsolated { $0.fail(failure) } }
        await #expect(throws: failure) { try await leaving.value }
        let next = try network.client(store: .file(path, user: "bob"))
        #expect(try await next.streams().isEmpty)
        await next.close()
    }

    @Test("a client that keeps nothing signs out too")
    func memory() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "1")).outcome()
        #expect(try await client.signOut() == [])
        #expect(throws: ReelError.closed) { try stream.objects("m") }
    }
}
