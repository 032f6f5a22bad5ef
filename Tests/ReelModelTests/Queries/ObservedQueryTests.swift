import Observation
import ReelClient
import ReelCore
import Synchronization
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import Reel

/// Queries for user interfaces.
@Suite(.timeLimit(.minutes(5))) @MainActor struct ObservedQueryTests {
    /// Waits until a condition is true on the main actor.
    private func soon(_ condition: @escaping @MainActor @Sendable () -> Bool) async throws {
        try await eventually { @Sendable in await condition() }
    }

    @Test("rows are there at once, and follow each change on the main actor") func rows() async throws {
        let client = try FakeNetwork().client(nodes: [])
        let todo = try await client.open("s", models: [Job.self])
        try await todo.insert(Job(id: "1"))
        let model = try todo.query(Job.self).filter { !$0.isDone }.observed()
        #expect(model.rows.map(\.id) == ["1"] && !model.isComplete && model.error == nil)
        let told = Mutex(false)
        withObservationTracking {
            _ = model.rows
        } onChange: {
            told.withLock { $0 = true }
        }
        try await todo.insert(Job(id: "0"))
        try await soon { model.rows.map(\.id) == ["0", "1"] }
        #expect(told.withLock { $0 } && model.rows.changes == QueryChanges(insertions: [0]))
        try await soon { model.pendingCount == 2 }
        await client.close()
        try await soon { model.error != nil }
        #expect((model.error as? ReelError)?.code == .closed && model.rows.count == 2)
    }

    @Test("rows are complete once the stream has arrived, and nothing waits once it is sent") func complete()
        async throws
    {
        let network = try FakeNetwork()
        let (first, second) = (try network.client(seed: 5), try network.client(seed: 6))
        let one = try await first.open("s", models: [Job.self])
        _ = try await one.insert(Job(id: "1")).outcome()
        try await network.on { network in network.kill("a") }
        let model = try await second.open("s", models: [Job.self]).query(Job.self).observed()
        #expect(model.rows.isEmpty && !model.isComplete)
        try await network.on { $0.down = [] }
        try await soon { model.isComplete }
        #expect(model.rows.map(\.id) == ["1"])
        try await soon { model.pendingCount == 0 }
        await first.close()
        await second.close()
    }

    @Test("a released model ends its work") func released() async throws {
        let client = try FakeNetwork().client(nodes: [])
        let todo = try await client.open("s", models: [Job.self])
        weak var released: ObservedQuery<Job>?
        do {
            let model = try todo.query(Job.self).observed()
            #expect(todo.live.present != nil && model.rows.isEmpty)
            released = model
        }
        #expect(released == nil)
        try await soon { todo.live.present == nil }
        await client.close()
    }
}
