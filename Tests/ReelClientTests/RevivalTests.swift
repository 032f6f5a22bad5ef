import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient
@testable import ReelCore

/// A waiting event never revives an object that this device has held and that was deleted meanwhile.
@Suite struct RevivalTests {
    /// A log with its folded state. Other devices write to it.
    struct Log {
        var fold = Fold(stream: StreamName("s")!, partition: 0, epoch: Epoch(1))
        private let site = Site(high: 1, low: 1)
        private var op: Op = 0

        @discardableResult
        mutating func write(_ event: SyncEvent) -> Outcome {
            defer { op += 1 }
            return take(event.encoded(base: fold.seq, author: .init(site: site, op: op)))
        }

        mutating func take(_ value: [UInt8]) -> Outcome {
            var event = ParsedEvent()
            return value.withUnsafeBytes { bytes in
                guard (try? event.parse(bytes)) != nil else { return .void }
                return fold.apply(event, bytes, seq: fold.seq + 1)
            }
        }

        /// Advances the fold so far that it forgets all tombstones.
        mutating func passHorizon() {
            fold.advance(to: fold.seq + 70_000)
            fold.marks = (1...Seq(Limits.marks)).map { fold.seq - 100 + $0 }
            fold.forget()
        }

        var reached: (seq: Seq, horizon: Seq) { (fold.seq, fold.horizon) }
    }

    static func send(_ outbox: inout Outbox, to log: Log) -> [[UInt8]] {
        let (seq, horizon) = log.reached
        let parcel = outbox.nextBatch(
            OutboxTests.wide,
            base: seq,
            horizon: horizon,
            confirmed: log.fold,
            nowMs: .max / 2
        )
        return parcel?.events ?? []
    }

    static func add(_ event: SyncEvent, to outbox: inout Outbox, over log: Log) -> Int64 {
        outbox.add(event, base: log.fold.seq) { log.fold.holds(model: $0.model, id: $0.id) }
    }

    /// Returns the queue as the store has it after the process has ended.
    static func restarted(_ outbox: Outbox) -> Outbox {
        var entries = Array(outbox.entries)
        for index in entries.indices {
            entries[index].acked = nil
            var base = Seq.none
            let stored = entries[index].event.encoded(base: entries[index].base)
            let event = stored.withUnsafeBytes { SyncEvent(encoded: $0, base: &base) }
            if let event { entries[index].event = event }
        }
        return Outbox(site: outbox.site, nextOp: outbox.nextOp, entries: entries, seed: 9)
    }

    static func codes(_ outbox: inout Outbox) -> [ErrorCode] {
        outbox.takeNotices().compactMap { notice in
            if case .settled(_, .failed(let error)) = notice { error.code } else { nil }
        }
    }

    @Test("a device sends an insert of a known object as an update, and a guard of −1 keeps the insert")
    func insertsBecomeUpdates() throws {
        var (log, outbox) = (Log(), Outbox(seed: 1))
        let guarded = SyncChange.insert("n", id: "x", ["c": 1]).guarded(["c": -1])
        // These events were published before the device had read anything.
        for event in [
            SyncEvent.insert("n", id: "x", ["a": 1]), SyncEvent(guarded),
            .batch([.insert("n", id: "x"), .insert("n", id: "y")]),
        ] {
            _ = outbox.add(event, base: -1, isKnown: false)
        }
        log.write(.insert("n", id: "x", ["b": 1]))
        let sent = Self.send(&outbox, to: log).map { String(decoding: $0, as: UTF8.self) }
        try #require(sent.count == 3)
        #expect(sent[0].hasSuffix(#""type":"update"}"#))
        #expect(sent[1].hasSuffix(#""type":"insert"}"#))
        #expect(sent[2].contains(#"{"id":"x","model":"n","type":"update"},{"id":"y","model":"n","type":"insert"}"#))
    }

    @Test(
        "a device refuses a queued event with deleted when its object is deleted and forgotten",
        arguments: [false, true]
    )
    func refusesGoneObject(isStartedAgain: Bool) throws {
        let guarded = SyncChange.insert("n", id: "x", ["c": 1]).guarded(["c": -1])
        let events: [SyncEvent] = [
            .insert("n", id: "x", ["a": 1]), .insert("n", id: "x"), SyncEvent(guarded),
            .update("n", id: "x", ["a": nil]),
            .batch([.insert("n", id: "y"), .insert("n", id: "x")]),
            .batch([.update("n", id: "x", ["a": 2]), .insert("n", id: "y")]),
        ]
        for event in events {
            var (log, outbox) = (Log(), Outbox(seed: 1))
            log.write(.insert("n", id: "x", ["b": 1]))
            _ = Self.add(event, to: &outbox, over: log)
            if isStartedAgain { outbox = Self.restarted(outbox) }
            log.write(.delete("n", id: "x"))
            log.passHorizon()
            #expect(log.fold.object(model: "n", id: "x") == nil, "the fold would take the insert")
            #expect(Self.send(&outbox, to: log).isEmpty, "\(event)")
            #expect(outbox.entries.isEmpty && Self.codes(&outbox) == [.deleted], "\(event)")
        }
    }

    @Test("a waiting event does not revive an object that the device has seen only while the event waited")
    func seenMeanwhile() {
        var (log, outbox) = (Log(), Outbox(seed: 1))
        _ = Self.add(.insert("n", id: "x", ["a": 1]), to: &outbox, over: log)
        log.write(.insert("n", id: "x"))
        #expect(outbox.hasUnseen)
        outbox.saw([ObjectName("n", id: "x")])
        #expect(!outbox.hasUnseen)
        log.write(.delete("n", id: "x"))
        log.passHorizon()
        #expect(Self.send(&outbox, to: log).isEmpty && Self.codes(&outbox) == [.deleted])
    }

    @Test("a device inserts an object that it has never held, even if the horizon has passed")
    func newObjectsAreMade() {
        var (log, outbox) = (Log(), Outbox(seed: 1))
        _ = Self.add(.insert("n", id: "x", ["a": 1]), to: &outbox, over: log)
        log.write(.insert("n", id: "other"))
        log.passHorizon()
        let sent = Self.send(&outbox, to: log)
        #expect(sent.count == 1 && log.take(sent[0]) == .applied)
    }

    @Test("a device does not revive a deleted object with a lost event under a new site", arguments: [false, true])
    func lostEventsReviveNothing(isBatch: Bool) {
        var (log, outbox) = (Log(), Outbox(seed: 1))
        log.write(.insert("n", id: "x", ["b": 1]))
        let insert = SyncChange.insert("n", id: "x", ["a": 1])
        _ = Self.add(isBatch ? .batch([insert, .insert("n", id: "y")]) : SyncEvent(insert), to: &outbox, over: log)
        let lost = Self.send(&outbox, to: log)
        #expect(lost.count == 1)
        log.write(.delete("n", id: "x"))
        log.passHorizon()
        // The device sends the event again. The event is too old to be the first event of a site.
        outbox.connected()
        let again = Self.send(&outbox, to: log)
        #expect(again == lost)
        #expect(log.take(again[0]) == .stale)
        let author = EventID(site: outbox.site, op: 0)
        let seq = log.fold.seq
        outbox.folded(author, seq: seq, .stale, content: again[0], base: seq, nowMs: 0)
        #expect(outbox.site != author.site)
        outbox.connected()
        #expect(Self.send(&outbox, to: log).isEmpty && Self.codes(&outbox) == [.deleted])
        #expect(log.fold.object(model: "n", id: "x") == nil)
    }

    @Test(
        "an event that moves to another epoch revives no object, however often the device has sent it",
        arguments: [0, 1, 2]
    )
    func newEpochRevivesNothing(times: Int) throws {
        var (log, outbox) = (Log(), Outbox(seed: 1))
        log.write(.insert("n", id: "x", ["b": 1]))
        let guarded = SyncChange.insert("n", id: "x", ["a": 1]).guarded(["a": -1])
        _ = Self.add(SyncEvent(guarded), to: &outbox, over: log)
        _ = Self.add(.insert("n", id: "y"), to: &outbox, over: log)
        for _ in 0..<times {
            outbox.connected()
            #expect(Self.send(&outbox, to: log).count == 2)
        }
        var next = Log()
        next.write(.insert("n", id: "other"))
        outbox.epochChanged(consumed: { _ in nil }, seq: next.fold.seq)
        outbox.expressSent(over: next.fold)
        outbox.connected()
        for value in Self.send(&outbox, to: next) { #expect(next.take(value) == .applied) }
        #expect(next.fold.object(model: "n", id: "x") == nil)
        #expect(next.fold.object(model: "n", id: "y") != nil)
        #expect(Self.codes(&outbox) == [.deleted])
    }

    @Test("a refused batch with a text of another object leaves a filler in its place")
    func lostTextIsFilled() {
        var (log, outbox) = (Log(), Outbox(seed: 1))
        log.write(.batch([.insert("n", id: "x"), .insert("n", id: "y", ["text": "ab"])]))
        let edit = FieldOperation.splice([TextSplice(at: 2, removing: 0, inserting: "c")])
        let batch = SyncEvent.batch([
            .update("n", id: "x", ["a": 1]), .update("n", id: "y", operations: ["text": edit]),
        ])
        _ = Self.add(batch, to: &outbox, over: log)
        log.write(.delete("n", id: "x"))
        let sent = Self.send(&outbox, to: log)
        #expect(sent.count == 1 && Self.codes(&outbox) == [.deleted])
        #expect(outbox.entries.first?.event.isFiller == true)
    }

    @Test("a guard of −1 survives an epoch and the horizon, and the state of the object decides")
    func guardsOfAbsentFields() throws {
        let guarded = SyncEvent(SyncChange.insert("n", id: "x", ["a": 1]).guarded(["a": -1]))
        #expect(!guarded.dependsOnBase)
        #expect(SyncEvent(SyncChange.update("n", id: "x").guarded(["a": -1, "b": 0])).dependsOnBase)
        for isTaken in [false, true] {
            var (log, outbox) = (Log(), Outbox(seed: 1))
            _ = Self.add(guarded, to: &outbox, over: log)
            var next = Log()
            if isTaken { next.write(.insert("n", id: "x", ["a": 0])) }
            outbox.epochChanged(consumed: { _ in nil }, seq: next.fold.seq)
            next.write(.insert("n", id: "other"))
            next.passHorizon()
            log = next
            let sent = Self.send(&outbox, to: log)
            try #require(sent.count == 1)
            #expect(log.take(sent[0]) == (isTaken ? .rejected(.guard) : .applied))
        }
    }

    @Test(
        "a device does not revive its object that was deleted and forgotten while the device was away",
        arguments: [false, true]
    )
    func deviceThatWasAway(isNewEpoch: Bool) async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        var client = try network.client(store: .file(path))
        var stream = try await client.open("s")
        try await stream.publish(.insert("n", id: "x", ["a": 0])).outcome()
        try await network.on { $0.kill("a") }
        // The first event depends on no field. The second event requires that a field is absent, and no device has made
        // its object.
        try await stream.publish(.insert("n", id: "x", ["a": 1]))
        let guarded = SyncEvent(SyncChange.insert("n", id: "y", ["a": 1]).guarded(["a": -1]))
        try await stream.publish(guarded)
        await client.close()
        try await network.on { network in
            network.author(.delete("n", id: "x"))
            for _ in 0..<17 * 4_096 { network.author(.noop) }
            if isNewEpoch { network.goOver(to: Epoch(2), lagging: []) }
            network.down = []
        }
        client = try network.client(store: .file(path))
        let notices = await client.notices()
        stream = try await client.open("s")
        for await case .notApplied("s", let event, .failed(let error)) in notices {
            #expect(event == .insert("n", id: "x", ["a": 1]) && error.code == .deleted)
            break
        }
        try await eventually { await stream.pendingCount == 0 }
        #expect(try stream.objects("n").map(\.name.id) == ["y"])
        let nodes = try await network.on { $0.fold(StreamName("s")!) }
        #expect(nodes.object(model: "n", id: "x") == nil && nodes.object(model: "n", id: "y") != nil)
        await client.close()
    }
}
