import Foundation
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

    @Test("barriers tell no outcome, other content shows another device, and an answer without progress is an error")
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
        let barrier = DeliveredEvent(seq: 6, value: Barrier.retire(before: 3, stream: StreamName("s")!).value)
        #expect(try covered.answered([barrier], to: 10).isEmpty)
        #expect(covered.question?.position == 10)
        let error = #expect(throws: ReelError.self) { _ = try covered.answered([], to: 10) }
        #expect(error?.code == .nodeBehind)
        #expect(covered.failed(ReelError(.logUnavailable, "busy", retryMs: 5_000)).isEmpty)
        #expect(covered.retryMs(after: ReelError(.logUnavailable, "busy", retryMs: 5_000)) == 5_000)
        #expect(covered.retryMs(after: ReelError(.logUnavailable, "busy", retryMs: largestInteger)) == 30_000)
        // Only the state of the next log shows if that log has the event.
        for code in [ErrorCode.epochChanged, .aheadOfLog, .diverged] {
            for _ in 0..<20 { #expect(covered.failed(ReelError(code, "x")).isEmpty && covered.question != nil) }
        }
        #expect(covered.retryMs(after: ReelError(.epochChanged, "x")) == 30_000)
        let settled = try covered.answered([delivered(event, 12)], to: 15)
        #expect(settled.map(\.number) == [7] && settled.map(\.fact) == [.own(.applied(12))])
        #expect(covered.question == nil)
        covered.add([.init(author: author, number: 7, after: 4, content: content)], epoch: Epoch(1), last: 20)
        let clone = delivered(.insert("m", id: "2"), 7)
        #expect(try covered.answered([clone], to: 10).map(\.fact) == [.other])
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
        #expect(old.map(\.number) == [0] && old.map(\.fact) == [.unknown])
        #expect(covered.question?.position == 50)
        #expect(covered.failed(ReelError(.truncated, "the log begins at 80")).map(\.number).sorted() == [1, 2])
        #expect(covered.question == nil)
    }

    @Test("a stream that ends while outcomes are asked for keeps its events", arguments: ["close", "forget"])
    func ended(by end: String) async throws {
        let network = try FakeNetwork()
        network.answers["a"] = { target, _ in target.contains("outcome=1") ? (503, []) : nil }
        network.heldPauses = [1_000]
        let client = try network.client()
        let (stream, handles) = try await cover(network, client)
        try await eventually { try await network.on { $0.requests.contains { $0.contains("outcome=1") } } }
        #expect(await stream.pendingCount == 3)
        if end == "close" {
            await stream.close()
            let error = await #expect(throws: ReelError.self) { try await handles[0].outcome() }
            #expect(error?.code == .closed)
            try await network.on { ($0.answers["a"], $0.holdsAnswers) = (nil, true) }
            let again = try await client.open("s")
            let outcomes = await again.pending()
            #expect(outcomes.count == 3)
            try await network.on { network in
                network.holdsAnswers = false
                network.answerHeld()
            }
            #expect(try await outcomes[0].outcome() == .applied(2))
            #expect(try await outcomes[1].outcome() == .rejected(.guard, 3))
            #expect(try await outcomes[2].outcome() == .applied(4))
        } else {
            try await client.forget("s", discardingQueue: true)
            guard case .unknown = try await handles[0].outcome() else { return #expect(Bool(false), "known") }
        }
        await client.close()
    }

    /// A device that was restored from a backup gives ops that its original has used, and takes a delta over them
    /// before a node has answered.
    ///
    /// - Parameters:
    ///   - theirs: the number of events that the original has sent.
    ///   - restarts: true if the device starts again before a node tells the contents.
    @Test(
        "no event is lost if a delta covers the ops that a device and its original have both used",
        arguments: [1, 2, 4],
        [false, true]
    )
    func cloned(theirs: Int, restarts: Bool) async throws {
        let network = try FakeNetwork()
        network.haste = 20
        let (path, copy) = (temporaryPath(), temporaryPath())
        defer {
            removeStore(path)
            removeStore(copy)
        }
        var original = try network.client(store: .file(path), seed: 1)
        try await original.open("s").publish(.insert("m", id: "0", ["n": 0])).outcome()
        await original.close()
        for end in ["", "-wal"] where FileManager.default.fileExists(atPath: path + end) {
            try FileManager.default.copyItem(atPath: path + end, toPath: copy + end)
        }
        var device = try network.client(store: .file(copy), seed: 2)
        var stream = try await device.open("s")
        try await stream.waitUntil(seq: 0)
        original = try network.client(store: .file(path), seed: 1)
        let first = try await original.open("s")
        try await network.on { $0.isSilent = true }
        for number in 0..<theirs { try await first.publish(.insert("m", id: "theirs \(number)")).acked() }
        await original.close()
        try await network.on { network in
            network.skip(Int(StreamSync.deltaFromSeqs))
            network.losesPublishes = true
            if restarts {
                network.heldPauses = [1_000]
                network.answers["a"] = { target, _ in target.contains("outcome=1") ? (503, []) : nil }
            }
        }
        var handles = [
            try await stream.publish(.insert("m", id: "mine", ["n": 1])),
            try await stream.publish(SyncEvent(.update("m", id: "0", ["n": 2]).guarded(["n": 0]))),
            try await stream.publish(.insert("m", id: "mine too")),
        ]
        try await eventually { await device.statistics.deltas == 1 }
        try await network.on { ($0.losesPublishes, $0.isSilent) = (false, false) }
        if restarts {
            try await eventually { try await network.on { $0.requests.contains { $0.contains("outcome=1") } } }
            #expect(await stream.pendingCount == 3)
            await device.close()
            try await network.on { ($0.answers["a"], $0.heldPauses, $0.holdsAnswers) = (nil, [], true) }
            device = try network.client(store: .file(copy), seed: 3)
            stream = try await device.open("s")
            handles = await stream.pending()
            #expect(handles.count == 3)
            try await network.on { network in
                network.holdsAnswers = false
                network.answerHeld()
            }
        }
        for handle in handles {
            guard case .applied = try await handle.outcome() else {
                Issue.record("\(handle.event): \(try await handle.outcome())")
                continue
            }
        }
        #expect(try stream.object("m", id: "0")?.fields["n"]?.value == 2)
        for id in ["mine", "mine too", "theirs 0"] { #expect(try stream.object("m", id: id) != nil, "\(id)") }
        let count = try await network.on { network in
            network.log.count { String(decoding: $0, as: UTF8.self).contains(#""mine too""#) }
        }
        #expect(count == 1)
        await device.close()
    }
}
