import Testing

@testable import ReelCore

/// Tests the checks on the site of an event, which come before the event is consumed.
@Suite struct FoldSiteRuleTests {
    @Test("a retirement ends the sites without an event after its seq, and no other")
    func retire() throws {
        var script = FoldScript()
        for site in 1...4 { script.noop(site) }
        script.noop(1)
        script.fold.apply(.retire(before: 2, stream: script.fold.stream), seq: 5)
        let ends = (1...4).map { script.fold.site(FoldScript.site($0))?.end }
        #expect(ends == [-1, 5, 5, -1])
        #expect((1...4).map { script.fold.site(FoldScript.site($0))?.seq } == [4, 1, 2, 3])
        #expect(script.fold.retired == 5)
        #expect(script.fold.liveSites == 2 && script.fold.endedSites == 2)
        // The retirement names one stream, so another stream ignores it.
        var other = script.fold
        let stream = try #require(StreamName("another"))
        other.apply(.retire(before: 5, stream: stream), seq: 6)
        #expect(other.retired == 5 && other.liveSites == 2 && other.seq == 6)
        // A second retirement does not change sites that have already ended.
        script.fold.apply(.retire(before: 5, stream: script.fold.stream), seq: 6)
        #expect((1...4).map { script.fold.site(FoldScript.site($0))?.end } == [6, 5, 5, 6])
        #expect(script.fold.liveSites == 0 && script.fold.retired == 6)
    }

    @Test("a retired site consumes nothing, and a forgotten one cannot begin again with what it knew before")
    func retiredSite() {
        var script = FoldScript()
        script.noop(1)
        script.noop(2)
        script.fold.apply(.retire(before: 0, stream: script.fold.stream), seq: 2)
        #expect(script.event("insert", 1) == .gap)
        // A forgotten site is treated like an unknown site.
        script.setHorizon(2)
        script.fold.forget()
        #expect(script.fold.site(FoldScript.site(1)) == nil)
        #expect(script.fold.endedSites == 0)
        script.fold.marks = []
        #expect(script.event("insert", 1, op: 0, base: 1) == .stale)
        #expect(script.event("insert", 3, op: 0, base: 1) == .stale)
        #expect(script.event("insert", 3, op: 0, base: 2) == .applied)
    }

    @Test("a snapshot, a delta, rows and seeds carry a retirement")
    func retirementTravels() throws {
        var script = FoldScript()
        for site in 1...3 { script.noop(site) }
        let early = script.fold
        script.noop(1)
        script.fold.apply(.retire(before: 2, stream: script.fold.stream), seq: 4)
        let lines = try script.fold.lines()
        var loaded = try lines.withUnsafeBytes { try Fold(snapshot: $0) }
        #expect(loaded.retired == 4 && loaded.endedSites == 2 && loaded.digest() == script.fold.digest())
        // The retired sites have no event after seq 2, but the delta must contain them.
        let delta = try script.fold.lines(after: 2)
        var reached = early
        try delta.withUnsafeBytes { try reached.apply(delta: $0) }
        #expect(reached.retired == 4 && reached.endedSites == 2 && reached.digest() == script.fold.digest())
        var head: [UInt8] = []
        script.fold.writeHead(to: &head)
        var loader = try head.withUnsafeBytes {
            try FoldLoader(stream: script.fold.stream, partition: 0, epoch: script.fold.epoch, seq: 4, head: $0)
        }
        for site in script.fold.sites() {
            var row: [UInt8] = []
            script.fold.writeRow(ofSite: site, to: &row)
            try row.withUnsafeBytes { try loader.add(site: site, row: $0) }
        }
        var stored = loader.finish()
        #expect(stored.retired == 4 && stored.digest() == script.fold.digest())
        var next = Fold(stream: script.fold.stream, partition: 0, epoch: Epoch(0xbb))
        var seq: Seq = 0
        try script.fold.forEachSeed { _, value in
            try value.withUnsafeBytes { _ = next.apply(try ParsedSeed($0), $0, seq: seq) }
            seq += 1
        }
        #expect(next.retired == 0 && next.endedSites == 2 && next.liveSites == 1)
    }

    @Test("a site begins with op 0 and continues without a gap, each op once")
    func ordersOps() {
        var script = FoldScript()
        #expect(script.noop(op: 1) == .gap)
        #expect(script.noop() == .applied)
        #expect(script.noop(op: 0) == .duplicate)
        #expect(script.noop(op: 2) == .gap)
        #expect(script.noop() == .applied)
        #expect(script.fold.consumed == 2)
        #expect(script.fold.site(FoldScript.site(1))?.op == 1)
        #expect(script.fold.site(FoldScript.site(1))?.seq == 4)
    }

    @Test("a site belongs to the author of its first event, or to no author")
    func siteHasOneAuthor() {
        var script = FoldScript()
        #expect(script.noop(1, by: "ann") == .applied)
        #expect(script.noop(1, by: "bob") == .foreign)
        #expect(script.noop(1) == .foreign)
        #expect(script.noop(1, op: 0, by: "bob") == .foreign)
        #expect(script.noop(1, by: "ann") == .applied)
        #expect(script.noop(2) == .applied)
        #expect(script.noop(2, by: "ann") == .foreign)
    }

    @Test("the fold accepts no new event of an ended site")
    func endsSite() {
        var script = FoldScript()
        #expect(script.noop(last: true) == .applied)
        #expect(script.noop() == .gap)
        #expect(script.noop(op: 0) == .duplicate)
        #expect(script.fold.site(FoldScript.site(1))?.end == 0)
    }

    @Test("an ended site is ended too if its last event was rejected")
    func rejectedEnd() {
        var script = FoldScript()
        #expect(script.event("update", last: true) == .rejected(.noObject))
        #expect(script.noop() == .gap)
    }

    @Test("a new site with a base below the horizon is stale, a known one may fall back")
    func staleSite() {
        var script = FoldScript()
        script.noop(1)
        for _ in 0..<30 { script.noop(2) }
        script.setHorizon(10)
        #expect(script.noop(3, base: 9) == .stale)
        #expect(script.noop(3, base: 10) == .applied)
        #expect(script.noop(1, base: 3) == .applied)
    }

    @Test("a stream has 100,000 sites at most")
    func tooManySites() {
        var script = FoldScript()
        for number in 0..<100_000 {
            script.fold.sites[Site(high: 1, low: UInt64(number))] = SiteState()
        }
        #expect(script.noop(base: 5) == .tooManySites)
        #expect(script.fold.consumed == 0)
        script.fold.sites[Site(high: 1, low: 0)] = nil
        #expect(script.noop(base: -1) == .applied)
    }
}
