import ReelCore
import Testing

@testable import ReelClient

/// The queue of a device whose site an operator has retired.
@Suite struct RetiredSiteTests {
    private static let wide = Outbox.Window(events: 100, bytes: 1 << 20)
    private let epoch = Epoch(7)
    private let site = Site(high: 1, low: 1)
    private let unknown = PublishOutcome.unknown(Outbox.forgotten)

    /// Returns a queue on a fold at seq 10. Three inserts were handed over there, and one was not.
    private func queue() -> Outbox {
        let entries = (0..<4).map { entry($0, .insert("m", id: "\($0)"), isSent: $0 < 3) }
        return Outbox(site: site, nextOp: 3, entries: entries, seed: 1)
    }

    private func entry(_ op: Op, _ event: SyncEvent, base: Seq = 9, isSent: Bool = true) -> Outbox.Entry {
        var entry = Outbox.Entry(number: op + 1, event: event, base: base)
        guard isSent else { return entry }
        entry.author = .init(site: site, op: op)
        entry.firstSent = .init(epoch: epoch, seq: 10)
        return entry
    }

    private func position(_ seq: Seq, retired: Seq, horizon: Seq = -1, epoch: Epoch? = nil) -> Outbox.FoldPosition {
        .init(moment: .init(epoch: epoch ?? self.epoch, seq: seq), retired: retired, horizon: horizon)
    }

    private func ended(_ op: Op, at seq: Seq) -> (Site) -> Outbox.KnownSite? {
        { [site] in $0 == site ? .init(op: op, seq: seq, isForeign: false, isEnded: true) : nil }
    }

    private func settled(_ notices: [Outbox.Notice]) -> [Int64: PublishOutcome] {
        var outcomes: [Int64: PublishOutcome] = [:]
        for case .settled(let number, let outcome) in notices { outcomes[number] = outcome }
        return outcomes
    }

    /// Returns the ids that the queue sends next. Checks that they are events of the present site from op 0 on.
    private func ids(_ outbox: inout Outbox, base: Seq = 90, horizon: Seq = 50) throws -> [String] {
        let parcel = outbox.nextBatch(Self.wide, base: base, horizon: horizon, nowMs: 0)
        return try (parcel?.events ?? []).enumerated().map { op, bytes in
            let json = try #require(bytes.withUnsafeBytes { JSONValue(parsing: $0) }?.object)
            #expect(json["site"]?.string == outbox.site.description && json["op"] == .number(Double(op)))
            #expect(json["base"] == .number(Double(base)), "no site begins with what was made before the barrier")
            return json["id"]?.string ?? ""
        }
    }

    // MARK: Forgotten

    @Test("a device does not resend events that a forgotten site may have consumed; their outcome is unknown")
    func forgottenSite() throws {
        var outbox = queue()
        outbox.position = position(90, retired: 50, horizon: 60)
        outbox.leaveEndedSites { _ in nil }
        let notices = outbox.takeNotices()
        #expect(settled(notices) == [1: unknown, 2: unknown, 3: unknown])
        #expect(notices.suffix(2).first == .leftSite(.init(site: site, unknown: 3)))
        #expect(notices.last == .newSite(was: site, now: outbox.site))
        #expect(outbox.site != site)
        #expect(try ids(&outbox) == ["3"])
        outbox.leaveEndedSites { _ in nil }
        #expect(outbox.takeNotices() == [], "the new site has not begun, and is kept")
        #expect(outbox.nextOp == 1)
    }

    @Test("after a stale first event, a device does not resend events that a forgotten site may have consumed")
    func stale() throws {
        var outbox = queue()
        outbox.position = position(90, retired: 50, horizon: 60)
        outbox.folded(.init(site: site, op: 0), seq: 90, .stale, content: [], base: 90, nowMs: 0)
        #expect(settled(outbox.takeNotices()) == [1: unknown, 2: unknown, 3: unknown])
        #expect(outbox.site != site)
        #expect(try ids(&outbox) == ["3"])
    }

    @Test("a site that is missing before the stream can forget it has never begun: all events move to a new site")
    func neverBegan() throws {
        var outbox = queue()
        outbox.position = position(90, retired: 50, horizon: 10)
        outbox.leaveEndedSites { _ in nil }
        let notices = outbox.takeNotices()
        #expect(notices == [.leftSite(.init(site: site, moved: 3)), .newSite(was: site, now: outbox.site)])
        #expect(try ids(&outbox) == ["0", "1", "2", "3"])
    }

    @Test(
        "a device resends events under the same site if they were sent after the barrier",
        arguments: [-1, 10] as [Seq]
    )
    func sentAfterBarrier(retired: Seq) throws {
        var outbox = queue()
        for index in outbox.entries.indices { outbox.entries[index].base = 10 }
        outbox.position = position(90_000, retired: retired, horizon: 80_000)
        outbox.leaveEndedSites { _ in nil }
        #expect(outbox.takeNotices() == [])
        #expect(outbox.site == site)
        let parcel = outbox.nextBatch(Self.wide, base: 90_000, horizon: -1, nowMs: 0)
        #expect(
            parcel?.events.first == SyncEvent.insert("m", id: "0").encoded(base: 10, author: .init(site: site, op: 0))
        )
    }

    @Test("an event that an earlier version of the client has sent counts as sent before the barrier")
    func earlierVersion() {
        var outbox = queue()
        for index in outbox.entries.indices { outbox.entries[index].firstSent = nil }
        outbox.position = position(90, retired: 50)
        outbox.leaveEndedSites { _ in nil }
        #expect(settled(outbox.takeNotices()).values.allSatisfy { $0 == unknown })
        #expect(outbox.entries.map(\.number) == [4])
    }

    @Test("a device with an empty queue leaves a site that is forgotten or ended", arguments: [false, true])
    func leavesEndedSite(isKnown: Bool) {
        var outbox = Outbox(site: site, nextOp: 3, entries: [], seed: 1)
        outbox.position = position(90, retired: -1)
        outbox.leaveEndedSites { _ in nil }
        #expect(outbox.site == site, "nothing was retired")
        outbox.position = position(90, retired: 50)
        outbox.leaveEndedSites(isKnown ? ended(2, at: 5) : { _ in nil })
        #expect(outbox.takeNotices() == [.newSite(was: site, now: outbox.site)])
        #expect(outbox.site != site && outbox.nextOp == 0)
        #expect(outbox.takeWrites().last == .site(outbox.site, next: 0))
    }

    @Test("a device refuses splices that may depend on a text that may be lost")
    func lostText() {
        let write = entry(0, .update("m", id: "1", ["text": "ab"]))
        let splice = SyncEvent.update(
            "m",
            id: "1",
            operations: ["text": .splice([TextSplice(at: 2, removing: 0, inserting: "c")])]
        )
        let entries = [write, entry(1, splice, base: 89, isSent: false)]
        var outbox = Outbox(site: site, nextOp: 1, entries: entries, seed: 1)
        outbox.position = position(90, retired: 50, horizon: 60)
        outbox.leaveEndedSites { _ in nil }
        let outcomes = settled(outbox.takeNotices())
        #expect(outcomes[1] == unknown)
        guard case .failed(let error)? = outcomes[2] else {
            Issue.record("found \(outcomes)")
            return
        }
        #expect(error.code == .stale)
    }

    // MARK: Ended

    @Test("the entry of an ended site is exact: a device moves all events that it does not cover to a new site")
    func exact() throws {
        var outbox = queue()
        outbox.position = position(90, retired: 50)
        outbox.leaveEndedSites(ended(0, at: 20))
        let notices = outbox.takeNotices()
        #expect(settled(notices) == [1: .consumed(20)])
        #expect(notices.contains(.leftSite(.init(site: site, consumed: 1, moved: 2))))
        #expect(try ids(&outbox) == ["1", "2", "3"])
        // Late copies do not change the queue.
        outbox.folded(.init(site: site, op: 1), seq: 91, .gap, content: [], base: 91, nowMs: 0)
        #expect(outbox.entries.count == 3 && outbox.takeNotices() == [])
    }

    @Test("splices move with the text that they depend on, unless their author had not read all of the old site's text")
    func splices() throws {
        func outcomes(bases: [Seq]) -> [Int64: PublishOutcome] {
            let event = SyncEvent.update(
                "m",
                id: "1",
                operations: ["text": .splice([TextSplice(at: 0, removing: 0, inserting: "x")])]
            )
            let insert = entry(1, .insert("m", id: "1", ["text": ""]))
            let entries = bases.enumerated().map { entry(Op($0) + 2, event, base: $1, isSent: $0 == 0) }
            var outbox = Outbox(site: site, nextOp: 3, entries: [insert] + entries, seed: 1)
            outbox.position = position(90, retired: 50)
            outbox.leaveEndedSites(ended(0, at: 20))
            return settled(outbox.takeNotices())
        }
        #expect(outcomes(bases: [20, 30]) == [:])
        #expect(outcomes(bases: [19, 30]).count == 2)
        #expect(outcomes(bases: [20, 19]).count == 1)
    }

    @Test("a guarded first event of a new site gets a base after the barrier, and the later events keep their bases")
    func beginningWithAGuard() throws {
        let guarded = SyncEvent(.update("m", id: "1", ["n": 1]).guarded(["n": 3]))
        let splice = SyncEvent.update(
            "m",
            id: "1",
            operations: ["text": .splice([TextSplice(at: 0, removing: 0, inserting: "x")])]
        )
        let entries = [guarded, splice].enumerated().map { entry(Op($0), $1, isSent: false) }
        var outbox = Outbox(site: site, nextOp: 0, entries: entries, seed: 1)
        outbox.position = position(90, retired: 50)
        outbox.leaveEndedSites { _ in nil }
        #expect(outbox.takeNotices() == [])
        let sent = outbox.nextBatch(Self.wide, base: 90, horizon: 50, nowMs: 0)?.events
        let expected =
            [guarded.encoded(base: 90, author: .init(site: outbox.site, op: 0))]
            + [splice.encoded(base: 9, author: .init(site: outbox.site, op: 1))]
        #expect(sent == expected)
    }

    @Test("a splice that is the first event of a new site is rebased, and the fold applies it")
    func beginningWithASplice() throws {
        var device = LoggedDevice(.insert("m", id: "0", ["text": "title"]))
        try device.publish(LoggedDevice.edit(5, "x"))
        try device.publish(LoggedDevice.edit(6, "y"))
        device.write(
            .update("m", id: "0", operations: ["text": .splice([TextSplice(at: 0, removing: 0, inserting: "My ")])])
        )
        device.log.fold.apply(.retire(before: -1, stream: OverlaySimulation.name), seq: device.log.fold.seq + 1)
        device.read()
        let stream = device.stream
        stream.outbox.position = .init(device.log.fold)
        stream.outbox.leaveEndedSites { _ in nil }
        stream.placeReleased()
        let sent = device.send()
        #expect(sent.count == 1, "both splices are one event")
        for value in sent { #expect(device.log.take(value) == .applied) }
        device.read()
        #expect(stream.confirmed("m", "0")?["text"] == "My titlexy")
        #expect(stream.outbox.takeNotices() == [])
    }

    @Test("a device does not wait for an op that another device has used once the site has ended")
    func conflicting() throws {
        var outbox = queue()
        outbox.position = position(30, retired: -1)
        _ = outbox.nextBatch(Self.wide, base: 30, horizon: -1, nowMs: 0)
        outbox.nacked(.init(site: site, op: 0), ReelError(.conflict, "taken"), ref: 0, nowMs: 0)
        #expect(outbox.nextSendMs == nil)
        outbox.position = position(90, retired: 50)
        outbox.leaveEndedSites(ended(0, at: 20))
        outbox.connected()
        #expect(try ids(&outbox) == ["1", "2", "3"])
    }

    @Test("a device drops a filler of an ended site without a notice")
    func filler() {
        let entries = [entry(1, .noop), entry(2, .insert("m", id: "2"))]
        var outbox = Outbox(site: site, nextOp: 3, entries: entries, seed: 1)
        outbox.position = position(90, retired: 50)
        outbox.leaveEndedSites(ended(0, at: 20))
        #expect(settled(outbox.takeNotices()) == [2: .superseded])
        #expect(outbox.entries.map(\.number) == [3])
    }

    @Test("an ended site of another author name moves the events that it did not consume")
    func foreign() {
        var outbox = queue()
        outbox.position = position(90, retired: 50)
        let known = Outbox.KnownSite(op: 0, seq: 20, isForeign: true, isEnded: true)
        outbox.leaveEndedSites { [site] in $0 == site ? known : nil }
        #expect(outbox.site == site, "left by the rule for sites of others")
        outbox.leaveForeignSites { [site] in $0 == site ? known : nil }
        #expect(outbox.takeNotices().last == .leftSite(.init(site: site, consumed: 1, moved: 2)))
    }

    // MARK: Epochs

    @Test("in a new epoch after a retirement, a device does not resend events that a missing site may have consumed")
    func newEpoch() throws {
        var outbox = queue()
        outbox.position = position(90, retired: 40, epoch: Epoch(8))
        outbox.epochChanged(consumed: { _ in nil }, seq: 90)
        #expect(settled(outbox.takeNotices()) == [1: unknown, 2: unknown, 3: unknown])
        #expect(outbox.site != site)
        #expect(try ids(&outbox) == ["3"])
    }

    @Test("a device counts unconsumed events as first sent in the new epoch if their site is not retired")
    func countsAsFirstSent() {
        var outbox = queue()
        outbox.position = position(90, retired: -1, epoch: Epoch(8))
        outbox.epochChanged(consumed: { _ in nil }, seq: 90)
        #expect(outbox.takeNotices() == [])
        let sent = outbox.entries.prefix(3).map(\.firstSent)
        #expect(sent == Array(repeating: .init(epoch: Epoch(8), seq: 90), count: 3))
        var other = outbox
        other.position = position(70_000, retired: 300, horizon: 500, epoch: Epoch(8))
        other.leaveEndedSites { _ in nil }
        #expect(settled(other.takeNotices()).count == 3, "it may have consumed them after the epoch began")
        outbox.position = position(400, retired: 300, epoch: Epoch(8))
        outbox.leaveEndedSites { _ in nil }
        #expect(outbox.takeNotices().first == .leftSite(.init(site: site, moved: 3)))
    }

    @Test("a new epoch in which the site has ended moves the events that the site did not consume")
    func endedBefore() throws {
        var outbox = queue()
        outbox.position = position(90, retired: 40, epoch: Epoch(8))
        outbox.epochChanged(consumed: { [site] in $0 == site ? (0, 41) : nil }, seq: 90)
        outbox.leaveEndedSites(ended(0, at: 41))
        #expect(settled(outbox.takeNotices()) == [1: .consumed(nil)])
        #expect(try ids(&outbox) == ["1", "2", "3"])
    }

    // MARK: Hand-over

    @Test("an event keeps the position of its first hand-over, and later hand-overs do not change the position")
    func firstSent() {
        var outbox = Outbox(seed: 1)
        _ = outbox.add(.insert("m", id: "1"), base: 0, isKnown: false)
        _ = outbox.takeWrites()
        outbox.position = position(5, retired: -1)
        _ = outbox.nextBatch(Self.wide, base: 5, horizon: -1, nowMs: 0)
        let put = outbox.takeWrites().compactMap { if case .put(let entry) = $0 { entry.firstSent } else { nil } }
        #expect(put == [.init(epoch: epoch, seq: 5)])
        outbox.connected()
        outbox.position = position(8, retired: -1)
        #expect(outbox.nextBatch(Self.wide, base: 8, horizon: -1, nowMs: 0) != nil)
        #expect(outbox.entries.first?.firstSent == .init(epoch: epoch, seq: 5))
    }
}
