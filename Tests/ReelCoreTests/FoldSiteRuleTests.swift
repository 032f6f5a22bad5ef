import Testing

@testable import ReelCore

/// Who is heard at all: what is checked before an event is consumed.
@Suite struct FoldSiteRuleTests {
    @Test("a site begins with op 0 and goes on without a gap, each op once")
    func order() {
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

    @Test("a site belongs to who began it, or to nobody")
    func author() {
        var script = FoldScript()
        #expect(script.noop(1, by: "ann") == .applied)
        #expect(script.noop(1, by: "bob") == .foreign)
        #expect(script.noop(1) == .foreign)
        #expect(script.noop(1, op: 0, by: "bob") == .foreign)
        #expect(script.noop(1, by: "ann") == .applied)
        #expect(script.noop(2) == .applied)
        #expect(script.noop(2, by: "ann") == .foreign)
    }

    @Test("an ended site says nothing more")
    func end() {
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
