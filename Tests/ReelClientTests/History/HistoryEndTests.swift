import Dispatch
import ReelCore
import ReelNet
import Synchronization
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// The beginning and the end of recording, and the work of an answer.
@Suite(.timeLimit(.minutes(5))) struct HistoryEndTests {
    @Test("recording begins with the first token, and stops for good, also over a restart") func stops() async throws {
        let network = try FakeNetwork()
        let storage = StoppingStorage(MemoryStorage())
        var client = try network.client(store: .storage(storage))
        var stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "1", ["n": 1])).outcome()
        #expect(try storage.keys("h").isEmpty)
        let token = try await stream.changes(since: nil).token
        try await stream.publish(.insert("m", id: "2", ["n": 1])).outcome()
        #expect(try storage.keys("h").count == 2)
        try await stream.stopRecordingChanges()
        try await stream.stopRecordingChanges()
        #expect(try storage.keys("h").isEmpty)
        try await stream.publish(.insert("m", id: "3", ["n": 1])).outcome()
        #expect(try storage.keys("h").isEmpty)
        await client.close()
        client = try network.client(store: .storage(storage), seed: 9)
        stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "4", ["n": 1])).outcome()
        #expect(try storage.keys("h").isEmpty)
        let again = try await stream.changes(since: token)
        #expect(try again.isReset && again.snapshot.objects("m").count == 4)
        try await stream.publish(.insert("m", id: "5", ["n": 1])).outcome()
        #expect(try await stream.changes(since: again.token).objects.map(\.name.id) == ["5"])
        #expect(try await stream.changes(since: token).isReset)
        await stream.close()
        let error = await #expect(throws: ReelError.self) { try await stream.stopRecordingChanges() }
        #expect(error?.code == .closed)
        await client.close()
    }

    @Test("recording ends by itself when no token can be answered any more, also over a restart")
    func endsAlone() async throws {
        let network = try FakeNetwork()
        let storage = StoppingStorage(MemoryStorage())
        var client = try network.client(store: .storage(storage))
        var stream = try await client.open("s")
        // A record of each of these updates keeps 180 KB of old values.
        func update(_ number: Int) -> SyncEvent {
            var fields: FieldMap<JSONValue> = [:]
            for field in 0..<180 { fields["\(field)"] = .string(String(repeating: "x", count: 1_000) + "\(number)") }
            return number == 0 ? .insert("m", id: "1", fields) : .update("m", id: "1", fields)
        }
        try await stream.publish(update(0)).outcome()
        let first = try await stream.changes(since: nil).token
        // A part of the app that asks keeps the history alive.
        var token = first
        for number in 1...48 {
            try await stream.publish(update(number)).outcome()
            if number == 20 { token = try await stream.changes(since: first).token }
        }
        #expect(try await stream.changes(since: first).isReset)
        #expect(try await stream.changes(since: token).objects.count == 1)
        await client.close()
        client = try network.client(store: .storage(storage), seed: 9)
        stream = try await client.open("s")
        var count = 0
        while try !storage.keys("h").isEmpty, count < 50 {
            count += 1
            try await stream.publish(update(100 + count)).outcome()
        }
        #expect(count > 5 && count < 30)
        let last = try await stream.changes(since: token)
        #expect(last.isReset)
        try await stream.publish(update(1)).outcome()
        #expect(try await stream.changes(since: last.token).objects.count == 1)
        await client.close()
    }

    @Test("other calls of the client complete while an answer is made, and the answer is of its moment")
    func offTheActor() async throws {
        let (network, storage) = (try FakeNetwork(), HookedStorage())
        let client = try network.client(nodes: [], store: .storage(storage))
        let stream = try await client.open("s")
        let token = try await stream.changes(since: nil).token
        try await stream.publish(.insert("m", id: "1"))
        let completed = Mutex<[Bool]>([])
        storage.setHook {
            // The reader of the history waits for a whole turn of the client's actor.
            let end = DispatchSemaphore(value: 0)
            network.loop.execute {
                client.assumeIsolated { client in
                    _ = try? client.accept(.insert("m", id: "2"), to: stream.opening, base: nil)
                    client.finishTurn()
                }
                end.signal()
            }
            completed.withLock { $0.append(end.wait(timeout: .now() + .seconds(60)) == .success) }
        }
        let changes = try await stream.changes(since: token)
        storage.setHook(nil)
        #expect(completed.withLock { $0 } == [true])
        #expect(changes.objects.map(\.name.id) == ["1"] && changes.objects[0].kind == .inserted)
        #expect(try changes.snapshot.objects("m").count == 1 && stream.objects("m").count == 2)
        #expect(try await stream.changes(since: changes.token).objects.map(\.name.id) == ["2"])
        await client.close()
    }
}

/// A storage in memory that calls a hook before it reads a history.
private final class HookedStorage: DeviceStorage {
    private let memory = MemoryStorage()
    private let hook = Mutex<(@Sendable () -> Void)?>(nil)

    func setHook(_ hook: (@Sendable () -> Void)?) { self.hook.withLock { $0 = hook } }

    func snapshot() throws(ReelError) -> any StorageSnapshot { Snapshot(try memory.snapshot(), self) }

    func commit(_ changes: StorageChanges, durably: Bool) throws(ReelError) {
        try memory.commit(changes, durably: durably)
    }

    func close() { memory.close() }

    func erase() throws(ReelError) { try memory.erase() }

    private final class Snapshot: StorageSnapshot {
        private let snapshot: any StorageSnapshot
        private let storage: HookedStorage

        init(_ snapshot: any StorageSnapshot, _ storage: HookedStorage) {
            (self.snapshot, self.storage) = (snapshot, storage)
        }

        func value(for key: [UInt8]) throws(ReelError) -> [UInt8]? { try snapshot.value(for: key) }

        func forEach(
            from start: [UInt8],
            to end: [UInt8],
            _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(ReelError) -> Bool
        ) throws(ReelError) {
            if start.first == UInt8(ascii: "h") { storage.hook.withLock { $0 }?() }
            try snapshot.forEach(from: start, to: end, body)
        }
    }
}
