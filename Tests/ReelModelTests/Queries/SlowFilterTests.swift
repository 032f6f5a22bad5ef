import Foundation
import ReelClient
import Synchronization
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import Reel

/// A filter that takes long delays its own query, and nothing else.
@Suite(.timeLimit(.minutes(5))) struct SlowFilterTests {
    private struct Refused: Error {}

    /// A filter that waits while it is held.
    private final class SlowFilter: Sendable {
        private let state = Mutex((isHeld: false, calls: 0))
        private let gate = DispatchSemaphore(value: 0)

        /// True if a call waits.
        var isWaiting: Bool { state.withLock { $0.calls > 0 } }

        func hold() { state.withLock { $0.isHeld = true } }

        func release() {
            state.withLock { $0.isHeld = false }
            gate.signal()
        }

        func includes(_ job: Job) -> Bool {
            let waits = state.withLock { state in
                if state.isHeld { state.calls += 1 }
                return state.isHeld
            }
            if waits {
                gate.wait()
                gate.signal()
            }
            return !job.isDone
        }
    }

    private let client: SyncClient
    private let todo: Dataset
    private let slow = SlowFilter()
    private let query: Query<Job>

    init() async throws {
        client = try FakeNetwork().client(nodes: [])
        todo = try await client.open("s", models: [Job.self])
        query = todo.query(Job.self).filter { [slow] in slow.includes($0) }.sort(by: \.votes)
        for number in 0..<6 {
            var job = Job(id: ModelID("\(number)"))
            job.votes = number
            try await todo.insert(job)
        }
    }

    /// Runs `body` on a thread of its own, which may be blocked.
    private func onThread<T: Sendable>(_ body: @escaping @Sendable () throws -> T) -> Task<T, any Error> {
        Task {
            try await withCheckedThrowingContinuation { continuation in
                Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
            }
        }
    }

    /// Writes to the dataset and reads from it in all ways while the filter waits.
    private func checkOthers() async throws {
        try await eventually { [slow] in slow.isWaiting }
        let other = todo.query(Job.self).filter { !$0.isDone }.sort(by: \.title)
        var rows = other.values.makeAsyncIterator()
        var counts = todo.query(Job.self).counts(groupedBy: \.isDone).makeAsyncIterator()
        let before = try #require(try await rows.next())
        #expect(try await counts.next()?[false] == before.count)
        try await todo.update(ModelID<Job>("1")) { $0.isDone = true }
        try await todo.update(ModelID<Job>("2")) { $0.votes = 40 }
        try await todo.delete(ModelID<Job>("3"))
        try await todo.insert(Job(id: "new"))
        #expect(try await rows.next()?.map(\.id.text) == ["0", "2", "4", "5", "new"])
        #expect(try await counts.next()?.counts == [false: 5, true: 1])
        #expect(try other.rows().count == 5 && other.count() == 5 && other.limit(2).page().rows.count == 2)
        #expect(try await todo.query(Job.self).observed().rows.count == 6)
    }

    private let ids: @Sendable (QueryRows<Job>?) -> [String]? = { $0?.map(\.id.text) }

    @Test("the first rows are of one moment, and the changes that come while a filter waits follow")
    func firstRows() async throws {
        slow.hold()
        let reading = onThread { [query, ids] in
            let reader = try RowsReader(QuerySource(query))
            return [ids(try reader.next()), ids(try reader.next())]
        }
        try await checkOthers()
        slow.release()
        #expect(try await reading.value == [["0", "1", "2", "3", "4", "5"], ["0", "new", "4", "5", "2"]])
        await client.close()
    }

    @Test("a filter that waits for one changed object does not delay other queries") func changedRows() async throws {
        let changed = DispatchSemaphore(value: 0)
        let isRead = Mutex(false)
        let reading = onThread { [query, ids] in
            let reader = try RowsReader(QuerySource(query))
            _ = try reader.next()
            isRead.withLock { $0 = true }
            changed.wait()
            return [ids(try reader.next()), ids(try reader.next())]
        }
        try await eventually { isRead.withLock { $0 } }
        slow.hold()
        try await todo.update(ModelID<Job>("5")) { $0.votes = -1 }
        changed.signal()
        try await checkOthers()
        slow.release()
        #expect(try await reading.value == [["5", "0", "1", "2", "3", "4"], ["5", "0", "new", "4", "2"]])
        await client.close()
    }

    @Test("a count and a single read with a filter that waits do not delay other queries") func singleRead()
        async throws
    {
        // A running query of the model, whose decoded objects the reads use.
        var running = todo.query(Job.self).values.makeAsyncIterator()
        _ = try await running.next()
        slow.hold()
        let counting = onThread { [query] in
            let reader = try CountsReader(QuerySource(query), \.isDone)
            return [try reader.next()?.total, try reader.next()?.total]
        }
        let reading = onThread { [query, ids] in ids(try query.rows()) }
        try await checkOthers()
        slow.release()
        #expect(try await counting.value == [6, 5])
        #expect(Set(try #require(try await reading.value)).isSuperset(of: ["0", "2", "4", "5"]))
        await client.close()
    }

    @Test("a query whose reader does not ask for a long time gets all changes, for any number of them")
    func manyChanges() async throws {
        let (one, two) = (try RowsReader(QuerySource(query)), try RowsReader(QuerySource(query.limit(3))))
        _ = try (one.next(), two.next())
        for number in 0..<1_100 {
            try await todo.update(ModelID<Job>("\(number % 6)")) { $0.votes = -number }
            if number % 2 == 0 { _ = try two.next() }
        }
        let rows = try #require(try one.next())
        #expect(ids(rows) == ["1", "0", "5", "4", "3", "2"] && rows.changes.insertions.isEmpty)
        await client.close()
    }

    @Test("a filter that throws in the first scan ends its query alone with the error") func throwing() async throws {
        let bad = todo.query(Job.self).filter { if $0.votes == 3 { throw Refused() } else { true } }
        var (rows, counts) = (bad.values.makeAsyncIterator(), bad.counts(groupedBy: \.isDone).makeAsyncIterator())
        var good = query.values.makeAsyncIterator()
        #expect(try await good.next()?.count == 6)
        await #expect(throws: Refused.self) { try await rows.next() }
        await #expect(throws: Refused.self) { try await counts.next() }
        #expect(throws: Refused.self) { try bad.rows() }
        #expect(throws: Refused.self) { try bad.count() }
        try await todo.delete(ModelID<Job>("3"))
        #expect(try await good.next()?.count == 5)
        #expect(try await rows.next() == nil)
        await client.close()
    }
}
