import Testing

@testable import ReelClient

@Suite struct LinkDelayTests {
    /// A connection with an answered ping, and another ping sent at 1,000 ms.
    private func pinged() -> LinkDelay {
        var delay = LinkDelay()
        delay.pinged(nowMs: 0)
        delay.answered()
        #expect(delay.received(bytes: 4_095, nowMs: 900) == .none)
        #expect(delay.received(bytes: 1, nowMs: 1_000) == .ping)
        delay.pinged(nowMs: 1_000)
        return delay
    }

    @Test("an answer is late after three seconds in which data keeps arriving") func late() {
        var delay = pinged()
        for ms in stride(from: 1_100, to: 4_000, by: 100) {
            #expect(delay.received(bytes: 1_000, nowMs: Int64(ms)) == .none)
        }
        #expect(delay.received(bytes: 1_000, nowMs: 4_000) == .late)
        #expect(delay.received(bytes: 1_000, nowMs: 4_100) == .none, "not for every frame")
        #expect(delay.received(bytes: 1_000, nowMs: 4_600) == .late)
        #expect(delay.waitedMs(nowMs: 4_600) == 3_600)
        delay.answered()
        #expect(delay.waitedMs(nowMs: 4_700) == 0)
    }

    @Test("a pause in the data ends a measurement, because nothing is queued then") func quiet() {
        var delay = pinged()
        #expect(delay.received(bytes: 1_000, nowMs: 1_900) == .none)
        #expect(delay.received(bytes: 1_000, nowMs: 4_100) == .none)
        #expect(delay.waitedMs(nowMs: 4_100) == 0)
        #expect(delay.received(bytes: 4_000, nowMs: 4_200) == .ping)
    }

    @Test("the parts of a long frame are no pause") func parts() {
        var delay = pinged()
        for ms in stride(from: 1_900, through: 9_100, by: 900) { delay.heard(nowMs: Int64(ms)) }
        #expect(delay.received(bytes: 100_000, nowMs: 9_500) == .late)
    }

    @Test("a connection whose first ping has no answer is not judged") func unknown() {
        var delay = LinkDelay()
        delay.pinged(nowMs: 0)
        for ms in stride(from: 0, to: 20_000, by: 500) {
            #expect(delay.received(bytes: 10_000, nowMs: Int64(ms)) == .none)
        }
        #expect(delay.waitedMs(nowMs: 20_000) == 0)
    }
}
