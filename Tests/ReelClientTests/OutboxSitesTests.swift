import ReelCore
import Testing

@testable import ReelClient

/// The sites of a queue, compared with the sites that the fold has.
@Suite struct OutboxSitesTests {
    private static let wide = Outbox.Window(events: 100, bytes: 1 << 20)

    /// Returns a queue with three events that were handed over in an earlier run, and one event that was not.
    private func restored() -> Outbox {
        let site = Site(high: 1, low: 1)
        let entries = (0..<4).map { (number: Int64) -> Outbox.Entry in
            let author = number < 3 ? EventID(site: site, op: number) : nil
            return Outbox.Entry(number: number + 1, event: .insert("m", id: "\(number)"), base: 0, author: author)
        }
        return Outbox(site: site, nextOp: 3, entries: entries, seed: 1)
    }

    @Test("a device does not resend events that another user's connection may have sent; unconsumed ones are unknown")
    func foreignConnection() {
        var outbox = restored()
        let was = outbox.site
        outbox.leaveForeignSites { $0 == was ? .init(op: 0, seq: 9, isForeign: true) : nil }
        let notices = outbox.takeNotices()
        let error = ReelError(.foreign, "it was sent under another user, and whether it arrived cannot be told")
        #expect(notices.contains(.settled(number: 1, .consumed(9))))
        #expect(notices.contains(.settled(number: 2, .unknown(error))))
        #expect(notices.contains(.settled(number: 3, .unknown(error))))
        #expect(notices.last == .leftSite(.init(site: was, consumed: 1, moved: 0, unknown: 2)))
        let parcel = outbox.nextBatch(Self.wide, base: 9, horizon: -1, nowMs: 0)
        let author = EventID(site: outbox.site, op: 0)
        #expect(outbox.site != was)
        #expect(parcel?.events == [SyncEvent.insert("m", id: "3").encoded(base: 0, author: author)])
        outbox.leaveForeignSites { $0 == was ? .init(op: 0, seq: 9, isForeign: true) : nil }
        #expect(outbox.takeNotices() == [], "a site is left once")
    }

    @Test("a device resends its own user's events once, under a new site, when their site is another user's")
    func resendsUnderNewSite() {
        var outbox = Outbox(seed: 1)
        for id in 0..<3 { _ = outbox.add(.insert("m", id: "\(id)"), base: 0, isKnown: false) }
        _ = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        let was = outbox.site
        let author = EventID(site: was, op: 0)
        outbox.acked(author, seq: 5, folded: 4, nowMs: 0)
        outbox.folded(author, seq: 5, .foreign, content: [], base: 7, nowMs: 0)
        outbox.connected()
        // The other user's events have taken these ops.
        outbox.leaveForeignSites { $0 == was ? .init(op: 4, seq: 3, isForeign: true) : nil }
        #expect(outbox.takeNotices().last == .leftSite(.init(site: was, consumed: 0, moved: 3, unknown: 0)))
        let again = outbox.nextBatch(Self.wide, base: 7, horizon: -1, nowMs: 0)
        let expected = (0..<3).map { id in
            SyncEvent.insert("m", id: "\(id)").encoded(base: 0, author: .init(site: outbox.site, op: Op(id)))
        }
        #expect(outbox.site != was)
        #expect(again?.events == expected)
        outbox.connected()
        #expect(outbox.nextBatch(Self.wide, base: 7, horizon: -1, nowMs: 0)?.events == expected)
    }

    @Test("a device keeps a site that this run has begun, whatever name the node gives")
    func begunHere() {
        var outbox = Outbox(seed: 1)
        _ = outbox.add(.insert("m", id: "1"), base: 0, isKnown: false)
        _ = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        let site = outbox.site
        outbox.leaveForeignSites { _ in .init(op: 0, seq: 3, isForeign: true) }
        #expect(outbox.site == site)
        outbox.userChanged()
        outbox.leaveForeignSites { _ in .init(op: 0, seq: 3, isForeign: true) }
        #expect(outbox.site != site)
    }

    @Test("a device keeps a site that has not begun, and the first author name that arrives owns it")
    func notBegun() {
        var outbox = restored()
        let site = outbox.site
        outbox.leaveForeignSites { _ in nil }
        #expect(outbox.takeNotices() == [])
        let parcel = outbox.nextBatch(Self.wide, base: 9, horizon: -1, nowMs: 0)
        #expect(parcel?.events.count == 4)
        #expect(outbox.site == site)
    }

    @Test("a device refuses a splice on its former site's text unless the author has read all of it")
    func splicesAfterSiteChange() {
        let site = Site(high: 1, low: 1)
        func splice(_ number: Int64, base: Seq) -> Outbox.Entry {
            let event = SyncEvent.update(
                "page",
                id: "1",
                operations: ["text": .splice([TextSplice(at: 0, removing: 0, inserting: "x")])]
            )
            return .init(number: number, event: event, base: base)
        }
        func kept(_ bases: [Seq]) -> [Int64] {
            let entries = bases.enumerated().map { splice(Int64($0) + 1, base: $1) }
            var outbox = Outbox(site: site, nextOp: 3, entries: entries, seed: 1)
            outbox.leaveForeignSites { $0 == site ? .init(op: 2, seq: 9, isForeign: true) : nil }
            return outbox.entries.map(\.number)
        }
        #expect(kept([9, 10]) == [1, 2])
        #expect(kept([8]) == [])
        #expect(kept([8, 9]) == [], "the second counts on the text of the first")

        var lost = splice(1, base: 9)
        lost.author = .init(site: site, op: 3)
        var outbox = Outbox(site: site, nextOp: 4, entries: [lost, splice(2, base: 9)], seed: 1)
        outbox.leaveForeignSites { $0 == site ? .init(op: 2, seq: 9, isForeign: true) : nil }
        #expect(outbox.entries.isEmpty, "it counts on a text of which nobody can tell")
    }

    @Test("a new site of a full stream sends nothing more until the fold has a place for it")
    func room() throws {
        var outbox = Outbox(seed: 1)
        _ = outbox.add(.insert("m", id: "1"), base: 0, isKnown: false)
        var nowMs: Int64 = 0
        func asks(hasRoom: Bool, isKnown: Bool = false) -> Bool {
            outbox.mayBegin(knows: { _ in isKnown }, hasRoom: hasRoom, nowMs: nowMs)
        }
        #expect(asks(hasRoom: true))
        let first = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        let parcel = try #require(first)
        let author = EventID(site: outbox.site, op: 0)
        outbox.acked(author, seq: 5, folded: 4, nowMs: 0)
        outbox.folded(author, seq: 5, .tooManySites, content: parcel.events[0], base: 5, nowMs: 0)
        for _ in 0..<100 {
            nowMs += 60_000
            outbox.connected()
            #expect(!asks(hasRoom: false))
        }
        let held = outbox.takeNotices().filter { if case .held = $0 { true } else { false } }
        #expect(held == [.held(ReelError(.tooManySites, "the stream has all the sites that it may have"))], "said once")
        #expect(asks(hasRoom: false, isKnown: true), "a site that is known goes on")
        #expect(asks(hasRoom: true))
        let next = try #require(outbox.nextSendMs)
        #expect((nowMs..<nowMs + Outbox.roomSpreadMs).contains(next), "not all devices ask at once")
        #expect(outbox.nextBatch(Self.wide, base: 6, horizon: -1, nowMs: next)?.events == parcel.events)
    }

    @Test("a device sends events after the last event of its site under another site")
    func afterLastEvent() throws {
        var outbox = Outbox(seed: 1)
        let was = outbox.site
        _ = outbox.add(.insert("m", id: "1"), base: 0, isKnown: false)
        _ = outbox.add(.last, base: 0, isKnown: true)
        _ = outbox.add(.insert("m", id: "2"), base: 0, isKnown: false)
        let handedOver = outbox.nextBatch(Self.wide, base: 0, horizon: -1, nowMs: 0)
        let parcel = try #require(handedOver)
        let noop = #"{"base":0,"last":true,"op":1,"site":"\#(was)","type":"noop"}"#
        #expect(parcel.events[1] == Array(noop.utf8))
        #expect(outbox.site != was)
        let next = SyncEvent.insert("m", id: "2").encoded(base: 0, author: .init(site: outbox.site, op: 0))
        #expect(parcel.events[2] == next)
        var base = Seq.none
        let stored = SyncEvent.last.encoded(base: 4).withUnsafeBytes { SyncEvent(encoded: $0, base: &base) }
        #expect(stored == .last && base == 4)
    }

    @Test("if the user is renamed any number of times, no event is applied twice, and each event has a true outcome")
    func renames() throws {
        for seed in 0..<100 as Range<UInt64> {
            var world = OutboxSimulation(seed: seed)
            world.renames = true
            for _ in 0..<500 { world.randomTurn() }
            guard world.drain() else {
                Issue.record("seed \(seed): \(world.outbox.entries.count) events never came through")
                continue
            }
            var count: [String: Int] = [:]
            for record in world.log where record.outcome == .applied {
                let json = record.content.withUnsafeBytes { JSONValue(parsing: $0) }?.object
                if let id = json?["id"]?.string { count[id, default: 0] += 1 }
            }
            for id in 0..<world.count {
                let id = String(id)
                switch world.outcomes[id] {
                case .applied, .consumed: #expect(count[id] == 1, "seed \(seed): event \(id)")
                case .unknown: #expect(count[id, default: 0] <= 1, "seed \(seed): event \(id)")
                case let outcome: Issue.record("seed \(seed): event \(id) is \(outcome.map { "\($0)" } ?? "lost")")
                }
            }
        }
    }
}
