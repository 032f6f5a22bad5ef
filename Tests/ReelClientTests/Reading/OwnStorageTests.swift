import OwnStorage
import ReelCore
import Synchronization
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Clients with storages that an app provides.
@Suite(.timeLimit(.minutes(5))) struct OwnStorageTests {
    @Test("a client on an app's own storage keeps its queue and its objects over a restart", arguments: [true, false])
    func restarts(isSQLite: Bool) async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        func storage() throws -> any DeviceStorage {
            isSQLite ? try SQLiteStorage(path: path) : try OwnStorage(path: path)
        }
        try await network.on { network in for id in 0..<50 { network.author(.insert("m", id: "\(id)", ["n": 1])) } }
        let first = try network.client(store: .storage(storage(), user: nil))
        let stream = try await first.open("s")
        try await stream.waitUntil(seq: 49)
        let digest = await stream.digest()
        try await network.on { network in
            network.down = ["a"]
            network.kill("a")
        }
        try await stream.publish(.update("m", id: "7", ["n": 2]))
        await first.close()
        let second = try network.client(store: .storage(storage(), user: nil))
        let reopened = try await second.open("s")
        #expect(await reopened.digest() == digest)
        #expect(await reopened.pendingCount == 1)
        #expect(try reopened.objects("m").count == 50 && reopened.object("m", id: "7")?["n"] == 2)
        try await network.on { $0.down = [] }
        try await eventually { await reopened.pendingCount == 0 }
        #expect(try reopened.confirmed.object("m", id: "7")?["n"] == 2)
        #expect(try await second.signOut().isEmpty)
        #expect(throws: ReelError.self) { try reopened.objects("m") }
    }

    @Test("a storage that cannot commit stops the client with its error, and the client confirms nothing")
    func failing() async throws {
        let network = try FakeNetwork()
        let storage = FailingStorage()
        let client = try network.client(store: .storage(storage))
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "1"))
        storage.fail()
        let error = await #expect(throws: ReelError.self) { try await stream.publish(.insert("m", id: "2")) }
        #expect(error?.code == .storeFull)
        let later = await #expect(throws: ReelError.self) { try await stream.publish(.insert("m", id: "3")) }
        #expect(later?.code == .storeFull)
        await client.close()
    }
}

/// A storage in memory that refuses all commits after a test switches it.
private final class FailingStorage: DeviceStorage {
    private let memory = MemoryStorage()
    private let isFull = Mutex(false)

    func fail() { isFull.withLock { $0 = true } }

    func snapshot() throws(ReelError) -> any StorageSnapshot { try memory.snapshot() }

    func commit(_ changes: StorageChanges, durably: Bool) throws(ReelError) {
        guard !isFull.withLock({ $0 }) else { throw ReelError(.storeFull, "found no room") }
        try memory.commit(changes, durably: durably)
    }

    func close() { memory.close() }

    func erase() throws(ReelError) { try memory.erase() }
}
