import ReelCore
import Testing

@testable import ReelGateway

// Tests partial sync, frame by frame.
extension SubscriptionsTests {
    private var own: Site { Site(high: 7, low: 7) }
    private var ofOwnSite: EventFilter { EventFilter(models: ["other"], site: own) }

    @Test("the next frame proves the seqs that a filter omits") func frameProvesFilteredSeqs() {
        var listeners = Listeners()
        let (partial, whole) = (Client(), Client())
        becomeLive(&listeners, partial, todo, after: -1, head: -1, filter: ofOwnSite)
        becomeLive(&listeners, whole, todo, after: -1, head: -1)
        let frames = partial.frames
        var lagged: [Seq] = []
        deliver(&listeners, Batches.batch(from: 0, [.event(todo, site, 0, "x")]), lagged: &lagged)
        #expect(partial.frames == frames, "a frame without events is not worth its bytes")
        let batch = Batches.batch(from: 1, [.event(todo, site, 1, "x"), .event(todo, own, 0, "x"), .barrier, .void])
        deliver(&listeners, batch, lagged: &lagged)
        #expect(partial.events[todo] == [2, 3], "barriers come whatever a filter says")
        #expect(partial.proven[todo] == 4)
        deliver(&listeners, Batches.batch(from: 5, [.event(todo, site, 2, "x")]), lagged: &lagged)
        listeners.tick(head: 5)
        #expect(partial.proven[todo] == 5)
        #expect(whole.events[todo] == [0, 1, 2, 3, 5])
        #expect(lagged.isEmpty)
    }

    @Test("only what it wants can make a filtered view lag") func onlyWhatItWants() {
        var listeners = Listeners()
        let client = Client()
        becomeLive(&listeners, client, todo, after: -1, head: -1, filter: ofOwnSite)
        client.keepsUp = false
        var lagged: [Seq] = []
        deliver(&listeners, Batches.batch(from: 0, [.event(todo, site, 0, "x")]), lagged: &lagged)
        #expect(lagged.isEmpty)
        deliver(&listeners, Batches.batch(from: 1, [.event(todo, own, 0, "x")]), lagged: &lagged)
        #expect(lagged == [-1], "what was left out before is not proven either")
    }
}
