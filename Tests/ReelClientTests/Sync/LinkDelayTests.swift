import Testing

@testable import ReelClient

@Suite struct LinkDelayTests {
    /// A connection with an answered ping, and another ping sent at 1,000 ms.
    private func pinged() -> LinkDelay {
        var delay = LinkDelay()
        delay.answered(delay.pinged(nowMs: 0))
        #expect(delay.received(bytes: 4_095, nowMs: 900) == .none)
        #expect(delay.received(bytes: 1, nowMs: 1_000) == .ping)
        _ = delay.pinged(nowMs: 1_000)
        return delay
    }

    @Test("an answer is late after three seconds in which data keeps arriving") func late() {
        var delay = pinged()
        for ms in stride(from: 1_100, to: 4_000, by: 100) {
            #expect(delay.received(bytes: 100, nowMs: Int64(ms)) == .none)
        }
        #expect(delay.received(bytes: 100, nowMs: 4_000) == .late)
        #expect(delay.received(bytes: 100, nowMs: 4_100) == .none, "not for every frame")
        #expect(delay.received(bytes: 100, nowMs: 4_600) == .late)
        #expect(delay.waitedMs(nowMs: 4_600) == 3_600)
        delay.answered(2)
        #expect(delay.waitedMs(nowMs: 4_700) == 0)
    }

    @Test("the answer to a later ping shows that an earlier one was dropped") func dropped() {
        var delay = pinged()
        for ms in [1_500, 2_000] { _ = delay.received(bytes: 2_048, nowMs: Int64(ms)) }
        #expect(delay.pinged(nowMs: 2_100) == 3)
        #expect(delay.waitedMs(nowMs: 2_600) == 1_600)
        delay.answered(3)
        #expect(delay.waitedMs(nowMs: 2_600) == 0)
    }

    @Test("the answer to an earlier ping leaves the later one awaited") func earlier() {
        var delay = pinged()
        _ = delay.pinged(nowMs: 2_100)
        delay.answered(2)
        #expect(delay.waitedMs(nowMs: 2_600) == 500)
    }

    @Test("a pause in the data ends a measurement, because nothing is queued then") func quiet() {
        var delay = pinged()
        #expect(delay.received(bytes: 1_000, nowMs: 1_900) == .none)
        #expect(delay.received(bytes: 1_000, nowMs: 4_100) == .none)
        #expect(delay.waitedMs(nowMs: 4_100) == 0)
        #expect(delay.received(bytes: 4_000, nowMs: 4_200) == .ping)
    }

    @Test("the parts of a long frame are no pause, and a sign of life after a pause is none either") func parts() {
        var delay = pinged()
        for ms in stride(from: 1_900, through: 9_100, by: 900) { delay.heard(nowMs: Int64(ms)) }
        #expect(delay.received(bytes: 1_000, nowMs: 9_500) == .late)
        delay.heard(nowMs: 20_000)
        #expect(delay.received(bytes: 1_000, nowMs: 20_100) == .none)
        #expect(delay.waitedMs(nowMs: 20_100) == 0)
    }

    @Test("a connection whose first ping has no answer is not judged") func unknown() {
        var delay = LinkDelay()
        _ = delay.pinged(nowMs: 0)
        for ms in stride(from: 0, to: 20_000, by: 500) {
            #expect(delay.received(bytes: 10_000, nowMs: Int64(ms)) == .none)
        }
        #expect(delay.waitedMs(nowMs: 20_000) == 0)
    }
}
