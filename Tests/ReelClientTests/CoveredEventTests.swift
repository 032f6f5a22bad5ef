import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
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
        try await stream.publish(.insert("m", id: "0", ["n": 1])).outcome()
        try await network.on { ($0.dropsAcks, $0.isSilent, $0.hasOutcomes) = (true, true, hasOutcomes) }
        try await network.on { $0.author(.update("m", id: "0", ["n": 2])) }
        let handles = [
            try await stream.publish(.insert("m", id: "1")),
            try await stream.publish(SyncEvent(.update("m", id: "0", ["n": 3]).guarded(["n": 0]))),
            try await stream.publish(.insert("m", id: "2")),
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

    @Test("barriers and events with other content tell no outcome, and an answer without progress is an error")
    func otherRecords() throws {
        let site = Site(high: 1, low: 1)
        let author = EventID(site: site, op: 0)
        func delivered(_ event: SyncEvent, _ seq: Seq) -> DeliveredEvent {
            let record = event.encoded(base: 3, author: author)
            return DeliveredEvent(seq: seq, value: Array(#"{"outcome":"applied","#.utf8) + record.dropFirst())
        }
        let event = SyncEvent.insert("m", id: "1")
        var covered = CoveredEvents()
        let content = event.encoded(base: 3, author: author)
        covered.add([.init(author: author, number: 7, after: 4, content: content)], epoch: Epoch(1), last: 20)
        #expect(!covered.isSettled(7))
        #expect(covered.settled(7, nil) && covered.isSettled(7) && !covered.settled(8, nil))
        let barrier = DeliveredEvent(seq: 6, value: Barrier.retire(before: 3, stream: StreamName("s")!).value)
        let clone = delivered(.insert("m", id: "2"), 7)
        #expect(try covered.answered([barrier, clone], to: 10).isEmpty)
        #expect(covered.question?.position == 10)
        let error = #expect(throws: ReelError.self) { _ = try covered.answered([], to: 10) }
        #expect(error?.code == .nodeBehind)
        #expect(covered.failed(ReelError(.logUnavailable, "busy", retryMs: 5_000)).isEmpty)
        #expect(covered.retryMs(after: ReelError(.logUnavailable, "busy", retryMs: 5_000)) == 5_000)
        #expect(covered.retryMs(after: ReelError(.logUnavailable, "busy", retryMs: largestInteger)) == 30_000)
        let settled = try covered.answered([delivered(event, 12)], to: 15)
        #expect(settled.map(\.number) == [7] && settled.map(\.outcome) == [.applied(12)])
        #expect(covered.question == nil && !covered.isSettled(7))
    }

    @Test("a trimmed log hides only the outcomes of the events that it may have had") func trimmed() throws {
        let site = Site(high: 1, low: 1)
        var covered = CoveredEvents()
        let events = (0..<3).map { op in
            CoveredEvents.Event(
                author: EventID(site: site, op: op),
                number: op,
                after: op == 0 ? 4 : 50,
                content: SyncEvent.insert("m", id: "\(op)").encoded(base: 3, author: EventID(site: site, op: op))
            )
        }
        covered.add(events, epoch: Epoch(1), last: 90)
        #expect(covered.question?.position == 4)
        let old = covered.failed(ReelError(.truncated, "the log begins at 20"))
        #expect(old.map(\.number) == [0] && old.map(\.outcome) == [.consumed(nil)])
        #expect(covered.question?.position == 50)
        #expect(covered.failed(ReelError(.truncated, "the log begins at 80")).map(\.number).sorted() == [1, 2])
        #expect(covered.question == nil)
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
