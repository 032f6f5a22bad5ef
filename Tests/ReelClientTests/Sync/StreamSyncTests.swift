import ReelCore
import Testing

@testable import ReelClient

/// Decisions of the machine that depend on more than its state.
@Suite struct StreamSyncTests {
    private let unavailable = ReelError(.logUnavailable, "cut")
    private let diverged = ReelError(.diverged, "differs")

    private func facts(
        seq: Seq = 10,
        head: Seq = 10,
        missing: SeqRanges = SeqRanges(),
        takesDelta: Bool = true,
        nodes: Int = 2,
        nowMs: Int64 = 1_000
    ) -> StreamSync.Facts {
        .init(
            nowMs: nowMs,
            hasState: true,
            seq: seq,
            head: head,
            missing: missing,
            takesDelta: takesDelta,
            nodes: nodes
        )
    }

    private func opened(_ start: StartPosition, _ facts: StreamSync.Facts) -> (StreamSync, [String]) {
        var machine = StreamSync(start: start)
        let actions = machine.handle(.opened(.init(link: StateCase.link, hasPlace: true)), facts)
        return (machine, actions.map(\.text))
    }

    // MARK: Loads

    @Test("a stream begins with a snapshot, a delta, its first event or the next one")
    func beginnings() {
        let empty = StreamSync.Facts()
        #expect(opened(.snapshot, empty).1.first == "load(snapshot from connection)")
        #expect(opened(.snapshot, facts()).1.first == "load(delta from connection)")
        #expect(opened(.beginning, empty).1 == ["subscribe(afterState)"])
        #expect(opened(.latest, empty).1 == ["subscribe(now)"])
    }

    @Test("a stream without nodes waits") func noNodes() {
        var machine = StreamSync(start: .snapshot)
        #expect(machine.handle(.opened(.init()), .init(nodes: 0)).isEmpty)
        #expect(machine.state == .paused(.offline))
    }

    @Test("after three failed loads from both kinds of node, the device reads the stream from its events")
    func eventsAfterFailures() {
        var (machine, _) = opened(.snapshot, facts())
        var actions: [[String]] = []
        for _ in 0..<3 {
            _ = machine.handle(.loadFailed(unavailable), facts())
            actions.append(machine.handle(.timerFired(.retry), facts()).map(\.text))
        }
        #expect(
            actions == [
                ["load(delta from peer)", "start(answer 6000)"],
                ["load(delta from connection)", "start(answer 12000)"], ["subscribe(afterState)"],
            ]
        )
    }

    @Test("a device requests the state after a new epoch until it arrives, and notifies the app once")
    func nextEpochIsNeeded() {
        var machine = StateCase.offline.machine()
        _ = machine.handle(.epochChanged, facts())
        _ = machine.handle(.connectionOpened(StateCase.link, hasPlace: true), facts(takesDelta: false))
        var told: [String] = []
        for _ in 0..<9 {
            #expect(StateCase(machine) == .loading)
            told += machine.handle(.loadFailed(unavailable), facts()).map(\.text).filter { $0.contains("waits") }
            _ = machine.handle(.timerFired(.retry), facts(takesDelta: false))
        }
        #expect(told == ["notify(waits log_unavailable)"])
        #expect(machine.handle(.loadFinished(StateCase.state), facts()).last == .install(.nextEpoch))
    }

    @Test("a truncated delta does not replace the state that the next epoch needs")
    func truncatedKeepsNextEpoch() {
        var machine = StateCase.offline.machine()
        _ = machine.handle(.epochChanged, facts())
        _ = machine.handle(.connectionOpened(StateCase.link, hasPlace: true), facts())
        _ = machine.handle(.loadFailed(.init(.truncated, "gone")), facts())
        #expect(machine.need == .nextEpoch)
    }

    @Test("the subscription decides on a delta that does not fit, and a snapshot replaces the delta")
    func contradictedDelta() {
        var (machine, _) = opened(.snapshot, facts())
        _ = machine.handle(.loadFailed(diverged), facts())
        #expect(machine.handle(.timerFired(.retry), facts()) == [.subscribe(.afterState)])
        let actions = machine.handle(.subscribed(head: 10), facts()).map(\.text)
        #expect(actions == ["unsubscribe", "load(snapshot from peer)", "start(answer 6000)"])
        #expect(machine.handle(.loadFinished(StateCase.state), facts()).last == .install(.snapshot))
    }

    @Test("a snapshot replaces a delta that does not fit beside a live subscription at once")
    func contradictedWhileLive() {
        var machine = StateCase.jumping.machine()
        let wide = facts(missing: StateCase.wideGap)
        _ = machine.handle(.loadFailed(diverged), wide)
        #expect(machine.handle(.timerFired(.retry), wide).first == .load(.snapshot, from: .peer))
    }

    @Test("a subscription that is far behind takes a delta first, unless the stream begins with its first event")
    func farBehind() {
        let far = facts(head: 10 + StreamSync.deltaFromSeqs)
        var machine = StateCase.subscribing.machine()
        let actions = machine.handle(.subscribed(head: far.head), far).map(\.text)
        #expect(actions == ["unsubscribe", "load(delta from connection)", "start(answer 3000)"])
        (machine, _) = opened(.beginning, facts())
        #expect(machine.handle(.subscribed(head: far.head), far) == [.notify(.live)])
    }

    @Test("a device limits its requests to a node whose states do not help") func uselessStates() {
        let far = facts(head: 100_000)
        var machine = StateCase.subscribing.machine()
        _ = machine.handle(.subscribed(head: far.head), far)
        var installed = 0
        while StateCase(machine) == .loading {
            #expect(machine.handle(.loadFinished(StateCase.state), far).last == .install(.events))
            _ = machine.handle(.installed(isTaken: false, before: 10), far)
            installed += 1
        }
        #expect((installed, machine.state) == (StreamSync.loadFailuresMax, .subscribing))
    }

    @Test("a device requests a state of another log again, and still needs it") func otherLog() {
        var machine = StateCase.subscribing.machine()
        _ = machine.handle(.refused(.init(.truncated, "gone"), .subscribe), facts())
        _ = machine.handle(.timerFired(.retry), facts())
        _ = machine.handle(.loadFinished(.init(seq: 10, epoch: Epoch(1), partition: 4)), facts())
        #expect((machine.state, machine.need) == (.paused(.retry(.nodeBehind)), .snapshot))
    }

    @Test("a state is complete once it was loaded, or folded up to the head of the subscription")
    func completeness() {
        var machine = opened(.beginning, facts()).0
        _ = machine.handle(.subscribed(head: 20), facts(head: 20))
        _ = machine.handle(.folded, facts(seq: 19))
        #expect(!machine.isComplete && !machine.maySend(at: 19))
        _ = machine.handle(.folded, facts(seq: 20))
        #expect(machine.isComplete && machine.maySend(at: 20))
        #expect(StateCase.subscribing.machine().isComplete)
    }

    @Test("a stream that began with new events continues after its state") func beginsNowOnce() {
        var machine = StateCase.offline.machine(.latest)
        #expect(
            machine.handle(.connectionOpened(StateCase.link, hasPlace: true), facts()) == [.subscribe(.afterState)]
        )
    }

    // MARK: Gaps

    @Test("a fetch has at most 64 ranges, and as many seqs as the node allows") func cutFetches() {
        var machine = StateCase.live.machine()
        let many = SeqRanges((0..<100).map { 2 * $0...2 * $0 })
        guard case .fetch(let ranges, _) = machine.handle(.proven(isAnswer: false), facts(missing: many)).last else {
            Issue.record("no fetch")
            return
        }
        #expect(ranges.count == 64)
        machine = StateCase.live.machine()
        let wide = SeqRanges([0...9, 20...5_000])
        #expect(
            machine.handle(.proven(isAnswer: false), facts(missing: wide)).last
                == .fetch(SeqRanges([0...9, 20...1_009]), from: .connection)
        )
    }

    @Test("a device sends a failed fetch to the other kind of node, if there is one", arguments: [1, 2])
    func alternatesSources(nodes: Int) {
        let gap = facts(missing: StateCase.gap, nodes: nodes)
        var machine = StateCase.live.machine()
        #expect(machine.handle(.proven(isAnswer: false), gap).last == .fetch(StateCase.gap, from: .connection))
        let late = machine.handle(.timerFired(.answer), gap)
        #expect(late.last == .fetch(StateCase.gap, from: nodes > 1 ? .peer : .connection))
        #expect(late.contains(.startTimer(.answer, ms: 6_000)))
    }

    @Test("a delta closes a wide gap, and the events close it if no delta helps") func wideGaps() {
        let wide = facts(missing: StateCase.wideGap)
        var machine = StateCase.live.machine()
        for _ in 0..<3 {
            _ = machine.handle(.proven(isAnswer: false), wide)
            #expect(StateCase(machine) == .jumping)
            _ = machine.handle(.loadFailed(unavailable), wide)
            _ = machine.handle(.timerFired(.retry), wide)
        }
        #expect(StateCase(machine) == .fetching)
    }

    @Test("a truncated fetch leads to a snapshot beside the subscription") func truncatedFetch() {
        var machine = StateCase.fetching.machine()
        let gap = facts(missing: StateCase.gap)
        _ = machine.handle(.refused(.init(.truncated, "gone"), .fetch), gap)
        #expect(machine.handle(.timerFired(.retry), gap).first == .load(.snapshot, from: .connection))
    }

    // MARK: Refusals

    @Test("a second node that contradicts the device stops the stream, and a lost subscription does not")
    func doubts() {
        var machine = StateCase.subscribing.machine()
        for subject in [StreamSync.Subject.subscribe, .subscription] {
            #expect(machine.handle(.refused(diverged, subject), facts()).last == .leaveNode(diverged))
            _ = machine.handle(.connectionOpened(StateCase.link, hasPlace: true), facts())
        }
        #expect(machine.handle(.refused(diverged, .subscribe), facts()).last == .stop(diverged))
        _ = machine.handle(.tokenChanged, facts())
        _ = machine.handle(.subscribed(head: 10), facts())
        #expect(machine.handle(.refused(diverged, .fetch), facts()).last == .leaveNode(diverged), "it was contradicted")
    }

    @Test("a limit error on a live subscription leads to polling") func limitWhileLive() {
        var machine = StateCase.live.machine()
        _ = machine.handle(.refused(.init(.limit, "too many"), .subscription), facts())
        #expect(StateCase(machine) == .polled)
    }

    @Test(
        "the time until the next attempt is the node's time, bounded by 10 ms and 30 s",
        arguments: [(0, 10), (99_999, 30_000)]
    )
    func boundsRetries(named: Int64, used: Int64) {
        var machine = StateCase.subscribing.machine()
        let error = ReelError(.overloaded, "busy", retryMs: named)
        #expect(machine.handle(.refused(error, .subscribe), facts()).last == .startTimer(.retry, ms: used))
    }

    // MARK: Polling

    @Test("a device tries a refused subscription again after half a minute, and not before") func refusedForLimit() {
        var machine = StateCase.subscribing.machine()
        _ = machine.handle(.refused(.init(.limit, "too many"), .subscribe), facts(nowMs: 1_000))
        #expect(machine.handle(.placeChanged(true), facts()).isEmpty)
        #expect(machine.handle(.timerFired(.poll), facts(nowMs: 30_999)).first == .poll)
        _ = machine.handle(.pollFailed(unavailable), facts())
        _ = machine.handle(.timerFired(.retry), facts())
        let actions = machine.handle(.timerFired(.poll), facts(nowMs: 31_000))
        #expect(actions == [.cancelTimer(.poll), .subscribe(.afterState)])
    }

    @Test("a device notifies the app once about a stream without a subscription, until the stream has had one")
    func toldOnce() {
        var machine = StateCase.polled.machine()
        _ = machine.handle(.connectionLost, facts())
        let again = machine.handle(.connectionOpened(StateCase.link, hasPlace: false), facts())
        #expect(again.first == .notify(.noPlace(isNew: false)))
        _ = machine.handle(.placeChanged(true), facts())
        _ = machine.handle(.subscribed(head: 10), facts())
        #expect(machine.handle(.placeChanged(false), facts()).contains(.notify(.noPlace(isNew: true))))
    }

    @Test("polls of a blocked queue become rarer, and frequent again when the queue moves") func pollPauses() {
        var machine = StateCase.polled.machine()
        var pauses: [StreamSync.Action?] = []
        func poll(isMoving: Bool) {
            _ = machine.handle(.timerFired(.poll), facts())
            let answer = StreamSync.PollAnswer(head: 10, isMoving: isMoving, isQueueEmpty: false, idleMs: 1_000)
            pauses.append(machine.handle(.pollAnswered(answer), facts()).last)
        }
        for isMoving in [false, false, false, false, true, false] { poll(isMoving: isMoving) }
        let expected: [Int64] = [400, 800, 1_000, 1_000, 200, 400]
        #expect(pauses == expected.map { .startTimer(.poll, ms: $0) })
        #expect(machine.handle(.queueMoved, facts()) == [.startTimer(.poll, ms: 200)])
    }

    @Test("a device hands over events in the turn of a poll that has reached the head") func handsOver() {
        var machine = StateCase.current.machine()
        #expect(machine.maySend(at: 10))
        _ = machine.handle(.turnEnded, facts())
        #expect(!machine.maySend(at: 10))
    }
}
