import ReelCore
import Testing

@testable import ReelClient

/// A stream that is read as deltas, because its connection is too slow for its events.
@Suite struct StreamSyncSlowLinkTests {
    private func facts(_ ms: Int64) -> StreamSync.Facts {
        var facts = StateCase.facts
        facts.nowMs = ms
        return facts
    }

    /// Answers the running delta at a time.
    private func finish(_ machine: inout StreamSync, _ state: StreamSync.Loaded, _ ms: Int64) {
        _ = machine.handle(.loadFinished(state), facts(ms))
        _ = machine.handle(.installed(isTaken: true, before: 3), facts(ms))
    }

    /// Subscribes at a time.
    private func subscribe(_ machine: inout StreamSync, _ ms: Int64) {
        #expect(machine.state == .subscribing)
        _ = machine.handle(.subscribed(head: 10), facts(ms))
    }

    /// Reads deltas until the stream tries a subscription, and returns the time of that.
    private func trial(_ machine: inout StreamSync, from ms: Int64) throws -> Int64 {
        var ms = ms
        _ = machine.handle(.behind, facts(ms))
        while machine.state != .subscribing {
            finish(&machine, StateCase.shortState, ms)
            ms += StreamSync.statePauseMs
            _ = machine.handle(.timerFired(.poll), facts(ms))
            try #require(ms < 10_000_000)
        }
        subscribe(&machine, ms)
        return ms
    }

    @Test("a subscription is tried after a minute, and later with each trial that shows a slow connection")
    func trials() throws {
        var machine = StateCase.live.machine()
        let first = try trial(&machine, from: 0)
        #expect(first == 60_000)
        let second = try trial(&machine, from: first + 3_000)
        #expect(second == first + 3_000 + 120_000)
        // The connection was fast for a while.
        let third = try trial(&machine, from: second + 60_000)
        #expect(third == second + 60_000 + 60_000)
    }

    @Test("a stream that has soon returned to its events ignores that it is behind, each time for longer")
    func mistakes() {
        var machine = StateCase.live.machine()
        var ms: Int64 = 0
        for pause in [10_000, 20_000, 40_000] as [Int64] {
            #expect(!machine.handle(.behind, facts(ms)).isEmpty)
            finish(&machine, StateCase.state, ms + 1_000)
            subscribe(&machine, ms + 1_000)
            #expect(machine.handle(.behind, facts(ms + pause)).isEmpty, "\(pause)")
            ms += 1_000 + pause
        }
        #expect(!machine.handle(.behind, facts(ms)).isEmpty)
    }

    @Test("a node without deltas leads back to the events") func failures() {
        var machine = StateCase.live.machine()
        _ = machine.handle(.behind, facts(0))
        for _ in 0..<StreamSync.loadFailuresMax {
            _ = machine.handle(.loadFailed(.init(.logUnavailable, "none")), facts(100))
            _ = machine.handle(.timerFired(.retry), facts(200))
            _ = machine.handle(.timerFired(.poll), facts(300))
        }
        subscribe(&machine, 400)
        #expect(machine.handle(.behind, facts(5_000)).isEmpty)
    }

    @Test("nothing is sent on a state that a former connection has brought") func formerConnection() {
        var machine = StateCase.resting.machine()
        #expect(machine.maySend(at: 10))
        _ = machine.handle(.timerFired(.poll), facts(2_000))
        #expect(machine.maySend(at: 10), "the last state is recent while the next one arrives")
        _ = machine.handle(.connectionLost, facts(3_000))
        _ = machine.handle(.progressed(.load), facts(3_000))
        _ = machine.handle(.loadFinished(StateCase.shortState), facts(3_000))
        _ = machine.handle(.connectionOpened(StateCase.link, hasPlace: true), facts(4_000))
        _ = machine.handle(.installed(isTaken: true, before: 3), facts(4_000))
        #expect(!machine.maySend(at: 10))
        #expect(machine.handle(.timerFired(.poll), facts(4_000)).first == .cancelTimer(.poll))
        finish(&machine, StateCase.shortState, 5_000)
        #expect(machine.maySend(at: 10))
    }

    @Test("nothing is sent on the state that a stopped stream had") func stopped() {
        var machine = StateCase.resting.machine()
        _ = machine.handle(.refused(StateCase.forbidden, .subscription), facts(2_000))
        _ = machine.handle(.tokenChanged, facts(3_600_000))
        #expect(!machine.maySend(at: 10))
    }

    @Test("after half a minute without a connection, the next one begins with events") func longAway() {
        var machine = StateCase.resting.machine()
        _ = machine.handle(.connectionLost, facts(10_000))
        _ = machine.handle(.connectionOpened(StateCase.link, hasPlace: true), facts(40_000))
        #expect(machine.state == .subscribing && machine.reading == .events)
    }
}
