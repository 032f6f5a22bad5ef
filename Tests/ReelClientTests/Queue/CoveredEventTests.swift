import ReelCore
import TestSupport
import Testing

@testable import ReelClient

/// Own events that a delta has covered, so that this device never folds them.
@Suite(.timeLimit(.minutes(5))) struct CoveredEventTests {
    /// Publishes three events while their node is silent: an applied one, a rejected one and an applied one. Then the
    /// device takes a delta over them.
    private func cover(
        _ network: FakeNetwork,
        _ client: SyncClient,
        hasOutcomes: Bool = true
    ) async throws -> (SyncStream, [PublishHandle]) {
        network.haste = 20
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", "0", ["n": 1])).outcome()
        try await network.on { ($0.dropsAcks, $0.isSilent, $0.hasOutcomes) = (true, true, hasOutcomes) }
        try await network.on { $0.author(.update("m", "0", ["n": 2])) }
        let handles = [
            try await stream.publish(.insert("m", "1")),
            try await stream.publish(SyncEvent(.update("m", "0", ["n": 3]).guarded(["n": 0]))),
            try await stream.publish(.insert("m", "2")),
        ]
        try await eventually { (try? await network.on { $0.head }) == 4 }
        try await network.on { network in
            network.skip(Int(StreamSync.deltaFromSeqs))
            for connection in network.connections { connection.end("reset") }
        }
        try await eventually { await client.statistics.deltas == 1 }
        return (stream, handles)
    }

    @Test("a device asks for the outcomes of own events that a delta has covered") func asked() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        var notices = await client.notices().makeAsyncIterator()
        let (stream, handles) = try await cover(network, client)
        #expect(try await handles[0].outcome() == .applied(2))
        #expect(try await handles[1].outcome() == .rejected(.guard, 3))
        #expect(try await handles[2].outcome() == .applied(4))
        #expect(await stream.pendingCount == 0)
        while let notice = await notices.next() {
            if case .notApplied("s", let event, .rejected(.guard, 3)) = notice, event == handles[1].event { break }
        }
        await client.close()
    }

    @Test("without an answer, an event is told as consumed") func unknown() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let (_, handles) = try await cover(network, client, hasOutcomes: false)
        #expect(try await handles[0].outcome() == .consumed(nil))
        #expect(try await handles[1].outcome() == .consumed(nil))
        #expect(try await handles[2].acked() == 4)
        #expect(try await handles[2].outcome() == .consumed(4))
        let questions = try await network.on { $0.requests.count { $0.contains("outcome=1") } }
        #expect(questions == CoveredEvents.attemptsMax)
        await client.close()
    }

    @Test("a stream that ends while outcomes are asked for tells what the state shows", arguments: ["close", "forget"])
    func ended(by end: String) async throws {
        let network = try FakeNetwork()
        network.answers["a"] = { target, _ in target.contains("outcome=1") ? (503, []) : nil }
        network.heldPauses = [1_000]
        let client = try network.client()
        let (stream, handles) = try await cover(network, client)
        try await eventually { try await network.on { $0.requests.contains { $0.contains("outcome=1") } } }
        if end == "close" { await stream.close() } else { try await client.forget("s") }
        #expect(try await handles[0].outcome() == .consumed(nil))
        #expect(try await handles[2].outcome() == .consumed(4))
        await client.close()
    }
}
