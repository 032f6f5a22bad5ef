import Foundation
import ReelClient
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import Reel

/// The rows with own events that are not confirmed yet.
@Suite(.timeLimit(.minutes(5))) struct PendingRowsTests {
    private let network: FakeNetwork
    private let first: SyncClient
    private let second: SyncClient
    private let one: Dataset
    private let two: Dataset

    init() async throws {
        network = try FakeNetwork()
        first = try network.client(nodes: ["a"], seed: 5)
        second = try network.client(nodes: ["b"], seed: 6)
        one = try await first.open("s", models: [Job.self], from: .beginning)
        two = try await second.open("s", models: [Job.self], from: .beginning)
    }

    private func close() async {
        await first.close()
        await second.close()
    }

    @Test("a row waits until its own event is confirmed, which is a change of the row, and on no other device")
    func confirmed() async throws {
        _ = try await one.batch { batch in for id in ["1", "2"] { try batch.insert(Job(id: ModelID(id))) } }.outcome()
        try await network.heal([one, two])
        try await network.cut(["a"])
        var iterator = one.query(Job.self).limit(200).values.makeAsyncIterator()
        var rows = try #require(try await iterator.next())
        #expect(rows.pending.isEmpty)
        try await one.update(ModelID<Job>("2")) { $0.title = "x" }
        rows = try #require(try await iterator.next())
        #expect(rows.pending == ["2"] && rows.changes == QueryChanges(updates: [1]))
        #expect(try one.query(Job.self).rows().pending == ["2"])
        #expect(try one.isPending(ModelID<Job>("2")) && !one.isPending(ModelID<Job>("1")))
        try await network.heal([one, two])
        let before = rows.values
        while !rows.pending.isEmpty { rows = try #require(try await iterator.next()) }
        #expect(rows.values == before && rows.changes == QueryChanges(updates: [1]))
        #expect(try !one.isPending(ModelID<Job>("2")))
        let other = try two.query(Job.self).rows()
        #expect(other.values == before && other.pending.isEmpty)
        await close()
    }

    @Test("a row waits after a restart, also in a single read and in a page") func restart() async throws {
        let path = FileManager.default.temporaryDirectory.path + "/reel-pending-\(UUID().uuidString)"
        defer { for end in ["", "-wal", "-shm", "-lock"] { try? FileManager.default.removeItem(atPath: path + end) } }
        for isRestarted in [false, true] {
            let client = try network.client(nodes: [], store: .file(path))
            let todo = try await client.open("s", models: [Job.self])
            if !isRestarted { try await todo.insert(Job(id: "1")) }
            let query = todo.query(Job.self)
            #expect(try query.rows().pending == ["1"] && query.limit(1).page().rows.pending == ["1"])
            var iterator = query.values.makeAsyncIterator()
            #expect(try await iterator.next()?.pending == ["1"])
            #expect(try query.limit(1).page().rows.pending == ["1"])
            await client.close()
        }
        await close()
    }

    @Test("a deleted object is no row, and `isPending` is true until the delete is confirmed") func deleted()
        async throws
    {
        _ = try await one.insert(Job(id: "1")).outcome()
        try await network.cut(["a"])
        try await one.delete(ModelID<Job>("1"))
        let rows = try one.query(Job.self).rows()
        #expect(rows.isEmpty && rows.pending.isEmpty)
        #expect(try one.isPending(ModelID<Job>("1")) && one.read { try $0.isPending(ModelID<Job>("1")) })
        try await network.heal([one])
        #expect(try !one.isPending(ModelID<Job>("1")) && !one.isPending(ModelID<Job>("never")))
        #expect(throws: SchemaError.self) { try one.isPending(ModelID<JobList>("1")) }
        await close()
    }

    @Test("a write that will be rejected shows nothing, so its row does not wait") func predicted() async throws {
        let original = Job(id: "1")
        _ = try await one.insert(original).outcome()
        try await network.heal([one, two])
        var iterator = one.query(Job.self).values.makeAsyncIterator()
        #expect(try await iterator.next()?.pending == [])
        try await network.cut(["a"])
        let write = try await one.update(original.id, if: .unchanged(\.title, since: original)) { $0.votes = 9 }
        #expect(try await iterator.next()?.pending == ["1"])
        _ = try await two.update(original.id) { $0.title = "two" }.outcome()
        try await network.on { network in (network.losesPublishes, network.down) = (true, []) }
        var rows: QueryRows<Job>?
        while rows?.first?.title != "two" { rows = try await iterator.next() }
        #expect(rows?.pending == [] && rows?.first?.votes == 0 && one.stream.status.pendingCount == 1)
        try await network.on { $0.losesPublishes = false }
        guard case .rejected(.guard, _) = try await write.outcome() else { throw ReelError(.closed, "not rejected") }
        #expect(try one.query(Job.self).rows().pending.isEmpty)
        await close()
    }

    @Test("a write that throws leaves no row that waits, and one that nodes reject no longer waits")
    func rejected() async throws {
        _ = try await one.insert(Job(id: "1")).outcome()
        try await network.heal([one, two])
        var iterator = one.query(Job.self).values.makeAsyncIterator()
        #expect(try await iterator.next()?.pending == [])
        await #expect(throws: ReelError.self) { try await one.update(ModelID<Job>("2")) { $0.votes = 9 } }
        #expect(try one.query(Job.self).rows().pending.isEmpty)
        // The second device writes the property of the condition first.
        try await network.cut(["a"])
        let write = try await one.update(ModelID<Job>("1"), if: .unchanged(\.note, since: Job(id: "1"))) {
            $0.title = "one"
        }
        _ = try await two.update(ModelID<Job>("1")) { $0.note = "two" }.outcome()
        #expect(try await iterator.next()?.pending == ["1"])
        try await network.heal([one, two])
        guard case .rejected = try await write.outcome() else { throw ReelError(.closed, "not rejected") }
        var rows = try #require(try await iterator.next())
        while rows.first?.note != "two" || !rows.pending.isEmpty { rows = try #require(try await iterator.next()) }
        #expect(rows.first?.title == "")
        await close()
    }
}
