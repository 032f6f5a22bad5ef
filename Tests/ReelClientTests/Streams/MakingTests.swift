import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Events that a closure makes from the present objects.
@Suite(.timeLimit(.minutes(5))) struct MakingTests {
    @Test("the closure sees all own events, also those that were enqueued before") func sees() async throws {
        let client = try FakeNetwork().client(nodes: [])
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "1", ["n": 1]))
        try stream.enqueue(.update("m", id: "1", ["n": 2]))
        let handle = try await stream.publish { objects in
            let number = try objects.object("m", id: "1")?["n"]?.number ?? 0
            return .update("m", id: "1", ["n": .number(number + 1)])
        }
        #expect(handle.event == .update("m", id: "1", ["n": 3]))
        try await stream.publish(.delete("m", id: "1"))
        try await stream.publish { objects in
            let (deleted, unknown) = (try objects.object("m", id: "1"), try objects.object("m", id: "2"))
            #expect(deleted == nil && unknown == nil)
            let isDeleted = (try objects.isDeleted("m", id: "1"), try objects.isDeleted("m", id: "2"))
            #expect(isDeleted == (true, false))
            return nil
        }
        await client.close()
    }

    @Test("the list of a model has the same objects as single reads, at each moment") func lists() async throws {
        try await Seeds.runAsync(5) { seed in
            var random = SeededNumbers(seed)
            let network = try FakeNetwork(seed: seed)
            let clients = [try network.client(nodes: ["a"], seed: 5), try network.client(nodes: ["b"], seed: 6)]
            var streams: [SyncStream] = []
            for client in clients { streams.append(try await client.open("s")) }
            for _ in 0..<60 {
                let index = random.below(2)
                let (kind, id) = (random.below(8), "\(random.below(6))")
                if kind == 0 { try await network.on { if $0.down.isEmpty { $0.kill("b") } else { $0.down = [] } } }
                if kind == 1 {
                    try await clients[index].evict("s")
                    streams[index] = try await clients[index].open("s")
                }
                // An event that waits, or arrives, in the same turn.
                _ = try? streams[index].enqueue(kind < 5 ? .insert("m", id: id, ["n": 1]) : .delete("m", id: id))
                try await streams[index].publish { objects in
                    let single = try (0..<6).compactMap { try objects.object("m", id: "\($0)") }
                    #expect(try objects.objects("m") == single, "REEL_SEED=\(seed)")
                    return nil
                }
            }
            for client in clients { await client.close() }
        }
    }

    @Test("without an event nothing is queued, and the outcome is superseded") func nothing() async throws {
        let client = try FakeNetwork().client(nodes: [])
        let stream = try await client.open("s")
        let handle = try await stream.publish { _ in nil }
        #expect(try await handle.outcome() == .superseded && handle.event.changes.isEmpty)
        #expect(await stream.pending().isEmpty)
        await client.close()
    }

    @Test("an error of the closure is thrown, and nothing is queued") func throwing() async throws {
        struct Stop: Error {}
        let client = try FakeNetwork().client(nodes: [])
        let stream = try await client.open("s")
        await #expect(throws: Stop.self) { try await stream.publish { _ in throw Stop() } }
        #expect(await stream.pending().isEmpty)
        await stream.close()
        let error = await #expect(throws: ReelError.self) { try await stream.publish { _ in nil } }
        #expect(error?.code == .closed)
        await client.close()
    }

    @Test("no event comes between reading and queueing") func concurrently() async throws {
        let client = try FakeNetwork().client(nodes: [])
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "1", ["n": 0]))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<100 {
                group.addTask {
                    try await stream.publish { objects in
                        let number = try objects.object("m", id: "1")?["n"]?.number ?? 0
                        return .update("m", id: "1", ["n": .number(number + 1)])
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try stream.object("m", id: "1")?["n"] == 100)
        await client.close()
    }
}
