import ReelCore
import TestSupport
import Testing

@testable import ReelClient

@Suite struct OutboxTests {
    static let wide = Outbox.Window(events: 100, bytes: 1 << 20)

    @Test("under any order of faults, the fold consumes every event once and in order") func anyInterleavingOfFaults() {
        Seeds.run(100) { seed in
            var world = OutboxSimulation(seed: seed)
            for _ in 0..<400 { world.randomTurn() }
            let came = world.drain()
            #expect(came, "seed \(seed): \(world.outbox.entries.count) events never came through")
            guard came else { return }
            // Each site has each op once, without a gap.
            var ops: [Site: Op] = [:]
            for record in world.log where record.outcome == .applied {
                #expect(record.author.op == (ops[record.author.site] ?? -1) + 1, "seed \(seed)")
                ops[record.author.site] = record.author.op
            }
            #expect(ops.count <= 1, "seed \(seed): the site changed without a clone")
            #expect(world.outbox.nextOp == (ops[world.outbox.site] ?? -1) + 1, "seed \(seed)")
            // No event is lost. Every event for which publish has returned is settled.
            for number in world.published.keys {
                #expect(world.settled[number] != nil, "seed \(seed): event \(number) is lost")
            }
        }
    }

    @Test("an event gets its op in the transaction before its batch is sent") func anOpIsGiven() {
        var outbox = Outbox(seed: 1)
        _ = outbox.takeWrites()
        _ = outbox.add(.update("m", id: "1", ["a": 1]), base: 4, isKnown: true)
        guard case .put(let queued)? = outbox.takeWrites().first else { return #expect(Bool(false)) }
        #expect(queued.author == nil)
        #expect(queued.base == 4)
        let parcel = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        #expect(parcel?.events.count == 1)
        let writes = outbox.takeWrites()
        #expect(writes.contains(.site(outbox.site, next: 1)))
        #expect(writes.contains { if case .put(let entry) = $0 { entry.author?.op == 0 } else { false } })
    }

    @Test("updates of one object are merged until they are handed over") func updatesOfOneObject() {
        var outbox = Outbox(seed: 1)
        let first = outbox.add(.update("m", id: "1", ["a": 1, "b": 1]), base: 0, isKnown: true)
        let second = outbox.add(.update("m", id: "1", ["a": 2, "c": nil]), base: 3, isKnown: true)
        #expect(first == second)
        #expect(outbox.entries.first?.event == .update("m", id: "1", ["a": 2, "b": 1, "c": nil]))
        _ = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        let third = outbox.add(.update("m", id: "1", ["a": 3]), base: 3, isKnown: true)
        #expect(third != first)
        _ = outbox.add(.update("m", id: "2", ["a": 3]), base: 3, isKnown: true)
        let fifth = outbox.add(.update("m", id: "1", ["a": 4]), base: 3, isKnown: true)
        #expect(fifth == third, "an update of another object between them does not matter")
        _ = outbox.add(.update("m", id: "1", operations: ["n": .increment(1)]), base: 3, isKnown: true)
        #expect(outbox.entries.count == 4, "the fold may reject an operation alone")
    }

    @Test("a device keeps a delete if another device may have the object") func aDeleteStaysIf() {
        var outbox = Outbox(seed: 1)
        _ = outbox.add(.insert("m", id: "1", ["a": 1]), base: 0, isKnown: true)
        _ = outbox.add(.delete("m", id: "1"), base: 0, isKnown: true)
        #expect(outbox.entries.map(\.event) == [.delete("m", id: "1")])
        _ = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        _ = outbox.add(.insert("m", id: "2"), base: 0, isKnown: false)
        _ = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        _ = outbox.add(.delete("m", id: "2"), base: 0, isKnown: false)
        #expect(outbox.entries.count == 3, "the insert may be in the log already")
    }

    @Test("a device refuses an event that exceeds the node's limit, and does not send it", arguments: [false, true])
    func refusesTooLarge(
        hasOp: Bool
    ) {
        var outbox = Outbox(seed: 1)
        let large = outbox.add(
            .update("m", id: "1", ["a": .string(String(repeating: "x", count: 9_000))]),
            base: 0,
            isKnown: true
        )
        _ = outbox.add(.update("m", id: "2", ["a": 1]), base: 0, isKnown: true)
        if hasOp {
            _ = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
            outbox.connected()
        }
        _ = outbox.takeNotices()
        var window = Self.wide
        window.event = 8_000
        let parcel = outbox.nextBatch(window, base: 0, horizon: -1, nowMs: 0)
        #expect(parcel?.events.count == 2, "another event fills its op")
        #expect(parcel?.events.allSatisfy { $0.count < 8_000 } == true)
        let notices = outbox.takeNotices()
        // An earlier copy that was sent may still reach the log.
        switch notices.first {
        case .settled(large, .failed(let error)): #expect(error.code == .tooLarge && !hasOp)
        case .settled(large, .unknown(let error)): #expect(error.code == .tooLarge && hasOp)
        default: Issue.record("\(notices)")
        }
        #expect(notices.count == 1)
    }

    @Test("a device drops its own insert but keeps the delete of an object that another device has inserted")
    func keepsDelete() {
        var outbox = Outbox(seed: 1)
        let insert = outbox.add(.insert("m", id: "1", ["a": 1]), base: 0, isKnown: false)
        _ = outbox.add(.delete("m", id: "1"), base: 5, isKnown: true)
        #expect(outbox.entries.map(\.event) == [.delete("m", id: "1")])
        #expect(outbox.takeNotices() == [.settled(number: insert, .superseded)])
    }

    @Test("a device reports a refused event and fills its op") func aRefusedEventIs() {
        var outbox = Outbox(seed: 1)
        let bad = outbox.add(.update("m", id: "1", ["a": 1]), base: 0, isKnown: true)
        _ = outbox.add(.update("m", id: "2", ["a": 1]), base: 0, isKnown: true)
        let parcel = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        _ = outbox.takeNotices()
        let error = ReelError(.tooLarge, "300 KiB found, at most 256 KiB expected")
        outbox.nacked(EventID(site: outbox.site, op: 0), error, ref: parcel?.ref, nowMs: 0)
        outbox.nacked(
            EventID(site: outbox.site, op: 1),
            ReelError(.gap, "", retryMs: 0),
            ref: parcel?.ref,
            nowMs: 0
        )
        #expect(outbox.takeNotices() == [.settled(number: bad, .failed(error))])
        let again = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: Outbox.retryMaxMs)
        let noop = SyncEvent.noop.encoded(base: 0, author: EventID(site: outbox.site, op: 0))
        #expect(again?.events.first == noop)
        #expect(again?.events.count == 2)
    }

    /// A splice into a text that was refused must not change another text.
    @Test("the fold rejects a splice after a refused text event if the splice may depend on that event")
    func rejectsAfterRefusedText() throws {
        let name = try #require(StreamName("s"))
        var outbox = Outbox(seed: 1)
        var fold = Fold(stream: name, partition: 0, epoch: Epoch(1))
        func splice(_ offset: Int64, _ text: String) -> SyncEvent {
            .update(
                "page",
                id: "1",
                operations: ["text": .splice([TextSplice(at: offset, removing: 0, inserting: text)])]
            )
        }
        func take(_ parcel: Outbox.PublishBatch?, from seq: Seq) throws -> [Outcome] {
            try #require(parcel).events.enumerated().map { index, bytes in
                var event = ParsedEvent()
                return try bytes.withUnsafeBytes { bytes in
                    try event.parse(bytes)
                    return fold.apply(event, bytes, seq: seq + Seq(index))
                }
            }
        }
        _ = outbox.add(.insert("page", id: "1", ["text": "old words"]), base: -1, isKnown: false)
        #expect(try take(outbox.nextBatch(Self.wide, base: -1, horizon: -1, nowMs: 0), from: 0) == [.applied])
        _ = outbox.add(splice(0, "too much"), base: 0, isKnown: true)
        let parcel = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        // The device makes one splice of the shown text before the refusal, and one after it.
        _ = outbox.add(splice(4, "x"), base: 0, isKnown: true)
        let author = { [site = outbox.site] in EventID(site: site, op: $0) }
        outbox.acked(author(0), seq: 0, folded: -1, nowMs: 0)
        outbox.nacked(author(1), ReelError(.tooLarge, ""), ref: parcel?.ref, nowMs: 0)
        _ = outbox.add(splice(5, "y"), base: 0, isKnown: true)
        let outcomes = try take(outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0), from: 1)
        #expect(outcomes == [.rejected(.guard), .rejected(.stale)], "the two later splices are one event")
        // The rejection does not affect another text of the device.
        _ = outbox.add(.insert("page", id: "2", ["text": "more"]), base: 0, isKnown: false)
        #expect(try take(outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0), from: 4) == [.applied])
        // The author of this splice has read the rejection.
        _ = outbox.add(splice(3, ","), base: 3, isKnown: true)
        #expect(try take(outbox.nextBatch(Self.wide, base: 3, horizon: -1, nowMs: 0), from: 5) == [.applied])
    }

    @Test("a device refuses a permanently nacked event at any position in its batch") func refusesInBatch() {
        var outbox = Outbox(seed: 1)
        _ = outbox.add(.update("m", id: "1", ["a": 1]), base: 0, isKnown: true)
        let bad = outbox.add(.update("m", id: "2", ["a": 1]), base: 0, isKnown: true)
        _ = outbox.add(.update("m", id: "3", ["a": 1]), base: 0, isKnown: true)
        let parcel = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        _ = outbox.takeNotices()
        // The gateway nacks the first event with `gap` because of the second one. At that moment the device plans to
        // resend all events.
        let gap = ReelError(.gap, "", retryMs: 0)
        let error = ReelError(.tooLarge, "300 KiB found, at most 256 KiB expected")
        for (op, error) in [(0, gap), (1, error), (2, gap)] as [(Op, ReelError)] {
            outbox.nacked(.init(site: outbox.site, op: op), error, ref: parcel?.ref, nowMs: 0)
        }
        #expect(outbox.takeNotices() == [.settled(number: bad, .failed(error))])
        let again = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: Outbox.retryMaxMs)
        #expect(again?.events.count == 3)
        #expect(again?.events[1] == SyncEvent.noop.encoded(base: 0, author: .init(site: outbox.site, op: 1)))
    }

    @Test("a device waits for answers to all sent events before it resends any") func waitsBeforeResend() {
        var outbox = Outbox(seed: 1)
        for id in 0..<3 { _ = outbox.add(.insert("m", id: "\(id)"), base: 0, isKnown: false) }
        let parcel = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        let author = { [site = outbox.site] in EventID(site: site, op: $0) }
        outbox.nacked(author(1), ReelError(.overloaded, "", retryMs: 200), ref: parcel?.ref, nowMs: 0)
        #expect(outbox.nextSendMs == nil, "two are on their way")
        outbox.nacked(author(2), ReelError(.gap, "", retryMs: 0), ref: parcel?.ref, nowMs: 0)
        #expect(outbox.nextSendMs == nil, "one is on its way")
        outbox.acked(author(0), seq: 7, folded: 5, nowMs: 0)
        #expect(outbox.nextSendMs == 200)
        let again = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 200)
        #expect(again?.events == parcel.map { Array($0.events.dropFirst()) }, "an ack that came meanwhile counts")
    }

    @Test("many refusals in a full pipeline cause one resend of all events, not one for each refusal")
    func manyRefusalsInA() {
        var world = OutboxSimulation(seed: 1)
        world.connect()
        for id in 0..<300 { world.publish(.insert("m", id: "\(id)", [id % 13 == 5 ? "bad" : "n": 1])) }
        var (sent, refs) = (0, Set<Int64>())
        for _ in 0..<100_000 where !world.outbox.entries.isEmpty {
            // Each batch takes one second on this link.
            world.nowMs += 1_000
            let count = world.inbox.count
            for _ in 0..<100 { world.send() }
            sent += world.inbox.dropFirst(count).reduce(0) { $0 + $1.events.count }
            refs.formUnion(world.inbox.map(\.ref))
            world.gatewayTurn(calm: true)
            while !world.answers.isEmpty { world.answerTurn() }
            world.foldTurn()
        }
        #expect(world.outbox.entries.isEmpty)
        #expect(world.refused.count == 23)
        #expect(refs.count == 2, "began anew \(refs.count - 1) times")
        #expect(sent <= 600, "sent \(sent) events for 300")
    }

    @Test("many acks for seqs that the fold has passed cause one resend of all events") func manyAcksForPlaces() {
        var outbox = Outbox(seed: 1)
        for id in 0..<100 { _ = outbox.add(.insert("m", id: "\(id)"), base: 0, isKnown: false) }
        let parcel = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        for op in 0..<100 {
            outbox.acked(.init(site: outbox.site, op: Op(op)), seq: Seq(op), folded: 100, nowMs: 0)
            if op < 99 { #expect(outbox.nextSendMs == nil) }
        }
        #expect(outbox.nextSendMs == 0, "one hole, no pause for each answer behind it")
        let again = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        #expect(again?.events == parcel?.events)
        #expect(again?.ref == parcel.map { $0.ref + 1 })
    }

    @Test("a device resends from the first op without an ack after a reconnect")
    func resendsAfterReconnect() {
        var outbox = Outbox(seed: 1)
        for id in 0..<3 { _ = outbox.add(.update("m", id: "\(id)", ["a": 1]), base: 0, isKnown: true) }
        let parcel = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        outbox.acked(EventID(site: outbox.site, op: 0), seq: 10, folded: 5, nowMs: 0)
        #expect(outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0) == nil, "it waits for the other acks")
        outbox.connected()
        let again = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        #expect(again?.events == parcel.map { Array($0.events.dropFirst()) })
    }

    @Test("a device rebases an event below the horizon before it sends the event") func rebasesBeforeSend() {
        var outbox = Outbox(seed: 1)
        _ = outbox.add(.insert("m", id: "1"), base: -1, isKnown: false)
        let parcel = outbox.nextBatch(Self.wide, base: 900, horizon: 400, nowMs: 0)
        let author = EventID(site: outbox.site, op: 0)
        #expect(parcel?.events == [SyncEvent.insert("m", id: "1").encoded(base: 900, author: author)])
    }

    @Test("a device holds its queue until the next connection after an error that no event caused") func holdsQueue() {
        var outbox = Outbox(seed: 1)
        for id in 0..<2 { _ = outbox.add(.update("m", id: "\(id)", ["a": 1]), base: 0, isKnown: true) }
        let parcel = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        let error = ReelError(.forbidden, "no")
        for op in 0..<2 as Range<Op> {
            outbox.nacked(EventID(site: outbox.site, op: op), error, ref: parcel?.ref, nowMs: 0)
        }
        #expect(outbox.takeNotices() == [.held(error)], "one reason, said once")
        #expect(outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 1_000_000) == nil)
        outbox.connected()
        #expect(outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)?.events.count == 2)
    }

    @Test("a device bounds the bytes in flight without an answer") func boundsInFlightBytes() {
        var outbox = Outbox(seed: 1)
        let text = JSONValue.string(String(repeating: "x", count: 20_000))
        for id in 0..<40 { _ = outbox.add(.insert("m", id: "\(id)", ["text": text]), base: 0, isKnown: false) }
        var sent = 0
        func nextBatch() {
            while let parcel = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0) {
                sent += parcel.events.count
            }
        }
        nextBatch()
        let most = Outbox.inFlightBytesMax / 20_000 + 1
        #expect(sent == most, "the last one may go beyond")
        for op in 0..<40 {
            outbox.acked(EventID(site: outbox.site, op: Op(op)), seq: Seq(op), folded: -1, nowMs: 0)
            nextBatch()
            #expect(sent == min(40, most + op + 1))
        }
        #expect(outbox.inFlightBytes == 0)
    }

    @Test("a device uses the node's retry time within its own bounds") func retryIsHonouredWithin() {
        var outbox = Outbox(seed: 1)
        _ = outbox.add(.update("m", id: "1", ["a": 1]), base: 0, isKnown: true)
        for (retry, expected) in [(500, 500), (Int64.max, Outbox.retryMaxMs)] as [(Int64, Int64)] {
            outbox.connected()
            let parcel = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 100)
            outbox.nacked(
                EventID(site: outbox.site, op: 0),
                ReelError(.logUnavailable, "", retryMs: retry),
                ref: parcel?.ref,
                nowMs: 100
            )
            #expect(outbox.nextSendMs == 100 + expected)
        }
    }

    @Test("an ack of an event that the fold already has also ends the growth of the pauses") func anAckOfWhat() {
        var outbox = Outbox(seed: 1)
        var nowMs: Int64 = 0
        for op in 0..<10 as Range<Op> {
            let author = EventID(site: outbox.site, op: op)
            _ = outbox.add(.insert("m", id: "\(op)"), base: 0, isKnown: false)
            let refused = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: nowMs)
            outbox.nacked(author, ReelError(.rateLimited, "", retryMs: 100), ref: refused?.ref, nowMs: nowMs)
            nowMs += 100
            #expect(outbox.nextSendMs == nowMs)
            let taken = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: nowMs)
            outbox.folded(author, seq: op, .applied, content: taken?.events[0] ?? [], base: op, nowMs: nowMs)
            outbox.acked(author, seq: op, folded: op, nowMs: nowMs)
        }
    }

    @Test("a device resends from the first missing op when the fold finds a gap before an acked op")
    func resendsFromGap() {
        var outbox = Outbox(seed: 1)
        for id in 0..<3 { _ = outbox.add(.update("m", id: "\(id)", ["a": 1]), base: 0, isKnown: true) }
        let parcel = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        for op in 0..<3 {
            outbox.acked(EventID(site: outbox.site, op: Op(op)), seq: Seq(10 + op), folded: 5, nowMs: 0)
        }
        #expect(outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0) == nil)
        let author = EventID(site: outbox.site, op: 1)
        outbox.folded(author, seq: 11, .gap, content: parcel?.events[1] ?? [], base: 11, nowMs: 0)
        #expect(outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 100)?.events == parcel?.events)
    }

    @Test("an ack for a seq that the fold has passed causes a resend") func anAckForA() {
        var outbox = Outbox(seed: 1)
        _ = outbox.add(.update("m", id: "1", ["a": 1]), base: 0, isKnown: true)
        let parcel = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        outbox.acked(EventID(site: outbox.site, op: 0), seq: 7, folded: 8, nowMs: 0)
        #expect(outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 100)?.events == parcel?.events)
    }

    @Test("a cloned device takes a new site and moves the events that were not consumed") func aCloneTakesA() {
        var outbox = Outbox(seed: 1)
        let was = outbox.site
        _ = outbox.add(.update("m", id: "1", ["a": 1]), base: 0, isKnown: true)
        _ = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        _ = outbox.add(.update("m", id: "2", ["a": 1]), base: 0, isKnown: true)
        // The other device's event has op 0.
        let author = EventID(site: was, op: 0)
        outbox.acked(author, seq: 4, folded: 2, nowMs: 0)
        _ = outbox.takeNotices()
        let theirs = SyncEvent.delete("m", id: "9").encoded(base: 0, author: author)
        outbox.folded(author, seq: 3, .applied, content: theirs, base: 3, nowMs: 0)
        #expect(outbox.site != was)
        #expect(outbox.takeNotices() == [.newSite(was: was, now: outbox.site)])
        let parcel = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 100)
        let expected = ["1", "2"].enumerated().map { op, id in
            SyncEvent.update("m", id: id, ["a": 1]).encoded(base: 0, author: .init(site: outbox.site, op: Op(op)))
        }
        #expect(parcel?.events == expected)
    }

    @Test("a cloned device refuses splices that depend on its former site's text") func aCloneRefusesWhat() {
        var outbox = Outbox(seed: 1)
        let was = outbox.site
        func splice(_ offset: Int64) -> SyncEvent {
            .update(
                "page",
                id: "1",
                operations: ["text": .splice([TextSplice(at: offset, removing: 0, inserting: "x")])]
            )
        }
        let handedOver = outbox.add(splice(0), base: 0, isKnown: true)
        _ = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        let queued = outbox.add(splice(1), base: 0, isKnown: true)
        _ = outbox.add(.update("m", id: "1", ["a": 1]), base: 0, isKnown: true)
        let author = EventID(site: was, op: 0)
        outbox.acked(author, seq: 4, folded: 2, nowMs: 0)
        let theirs = SyncEvent.delete("m", id: "9").encoded(base: 0, author: author)
        outbox.folded(author, seq: 3, .applied, content: theirs, base: 3, nowMs: 0)
        let refused = outbox.takeNotices().compactMap { notice -> Int64? in
            if case .settled(let number, .failed(let error)) = notice, error.code == .stale { number } else { nil }
        }
        #expect(Set(refused) == [handedOver, queued])
        #expect(outbox.entries.map(\.event) == [.update("m", id: "1", ["a": 1])])
        #expect(outbox.nextBatch(Self.wide, base: 3, horizon: -1, nowMs: 0)?.events.count == 1)
    }

    @Test("a cloned device takes one new site, however many ops the other device has used") func aCloneTakesOne() {
        var outbox = Outbox(seed: 1)
        let was = outbox.site
        for id in 0..<3 { _ = outbox.add(.update("m", id: "\(id)", ["a": 1]), base: 0, isKnown: true) }
        _ = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        for op in 0..<3 { outbox.acked(EventID(site: was, op: Op(op)), seq: Seq(4 + op), folded: 2, nowMs: 0) }
        _ = outbox.takeNotices()
        for op in 0..<3 {
            let author = EventID(site: was, op: Op(op))
            let theirs = SyncEvent.delete("m", id: "9").encoded(base: 0, author: author)
            outbox.folded(author, seq: 3, .applied, content: theirs, base: 3, nowMs: 0)
        }
        #expect(outbox.takeNotices() == [.newSite(was: was, now: outbox.site)])
        #expect(outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 100)?.events.count == 3)
    }

    @Test("an event of the device's own site that it never sent shows that the device was cloned") func anEventOfThe() {
        var outbox = Outbox(seed: 1)
        let was = outbox.site
        _ = outbox.takeNotices()
        outbox.folded(EventID(site: was, op: 0), seq: 3, .applied, content: [], base: 3, nowMs: 0)
        #expect(outbox.takeNotices() == [.newSite(was: was, now: outbox.site)])
        var other = Outbox(seed: 2)
        let site = other.site
        other.bootstrapped(consumed: { $0 == site ? (4, 9) : nil }, seq: 9)
        #expect(other.site != site)
    }

    @Test("a snapshot gives a seq only for the last event of a site") func lastSeqOnly() {
        var outbox = Outbox(seed: 1)
        for id in 0..<3 { _ = outbox.add(.insert("m", id: "\(id)"), base: 0, isKnown: false) }
        _ = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        _ = outbox.takeNotices()
        let site = outbox.site
        outbox.bootstrapped(consumed: { $0 == site ? (1, 9) : nil }, seq: 12)
        #expect(outbox.coveredCount == 2 && outbox.nextSendMs == nil)
        // A covered event with an ack is no event that the log has lost.
        let generation = outbox.generation
        outbox.acked(EventID(site: site, op: 0), seq: 5, folded: 12, nowMs: 0)
        #expect(outbox.takeNotices() == [.acked(number: 1, seq: 5)])
        outbox.bootstrapped(consumed: { $0 == site ? (1, 9) : nil }, seq: 13)
        #expect(outbox.generation == generation && outbox.takeNotices().isEmpty)
        for number in 1...3 { outbox.resolve(Int64(number), .unknown) }
        #expect(
            outbox.takeNotices() == [.settled(number: 1, .consumed(nil)), .settled(number: 2, .consumed(9))]
        )
        #expect(outbox.coveredCount == 0)
        // A seq of the next log says nothing about the event's seq in this log.
        outbox.epochChanged(consumed: { $0 == site ? (2, 3) : nil }, seq: 5)
        #expect(outbox.takeNotices() == [.settled(number: 3, .consumed(nil))])
    }

    @Test("a device replaces a site that never began because its first event was stale") func replacesStaleSite() {
        var outbox = Outbox(seed: 1)
        let was = outbox.site
        _ = outbox.add(.update("m", id: "1", ["a": 1]), base: 0, isKnown: true)
        let splice = outbox.add(
            .update("m", id: "1", operations: ["t": .splice([TextSplice(at: 0, removing: 0, inserting: "x")])]),
            base: 0,
            isKnown: true
        )
        _ = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        for op in 0..<2 as Range<Op> { outbox.acked(.init(site: was, op: op), seq: 70_000 + op, folded: 0, nowMs: 0) }
        _ = outbox.takeNotices()
        outbox.folded(EventID(site: was, op: 0), seq: 70_000, .stale, content: [], base: 70_000, nowMs: 0)
        #expect(outbox.site != was)
        let author = EventID(site: outbox.site, op: 0)
        let again = SyncEvent.update("m", id: "1", ["a": 1]).encoded(base: 70_000, author: author)
        #expect(outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 100)?.events == [again])
        let refused = outbox.takeNotices().contains {
            if case .settled(splice, .failed(let error)) = $0 { error.code == .stale } else { false }
        }
        #expect(refused, "a splice counts on a text that is gone")
    }

    @Test("in a new epoch, a device keeps its queue and applies it to the new state") func aNewEpochKeeps() {
        var outbox = Outbox(seed: 1)
        for id in 0..<2 { _ = outbox.add(.update("m", id: "\(id)", ["a": 1]), base: 50, isKnown: true) }
        let guarded = outbox.add(SyncEvent(.delete("m", id: "1").guarded(["a": 3])), base: 50, isKnown: true)
        _ = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        let site = outbox.site
        outbox.connected()
        outbox.epochChanged(consumed: { $0 == site ? (0, 6) : nil }, seq: 7)
        #expect(outbox.site == site)
        let author = { EventID(site: site, op: $0) }
        let expected = [
            SyncEvent.update("m", id: "1", ["a": 1]).encoded(base: 7, author: author(1)),
            SyncEvent.noop.encoded(base: 7, author: author(2)),
        ]
        #expect(outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)?.events == expected)
        let refused = outbox.takeNotices().contains {
            if case .settled(guarded, .failed(let error)) = $0 { error.code == .epochChanged } else { false }
        }
        #expect(refused)
    }

    @Test("a stored event decodes to the same event and base") func storedEventRoundTrips() {
        let events: [SyncEvent] = [
            .insert("tä\"sk", id: "1\u{7}", ["a": [1, "x\n", nil, ["k": true]], "b": 1.5e300]),
            .update(
                "m",
                id: "i",
                ["x": nil],
                operations: ["n": .increment(-2), "s": .change(add: ["a"], remove: [1])]
            ),
            .update(
                "m",
                id: "i",
                operations: [
                    "t": .splice([
                        TextSplice(at: 3, removing: 1, inserting: "héllo"),
                        TextSplice(at: 0, removing: 0, inserting: ""),
                    ])
                ]
            ),
            SyncEvent(.delete("m", id: "i").guarded(["a": 4, "b": -1])),
            .batch([.insert("m", id: "1"), .delete("m", id: "2")]), .noop,
        ]
        for event in events {
            var base: Seq = 0
            let bytes = event.encoded(base: 17)
            #expect(bytes.withUnsafeBytes { SyncEvent(encoded: $0, base: &base) } == event)
            #expect(base == 17)
        }
    }
}
