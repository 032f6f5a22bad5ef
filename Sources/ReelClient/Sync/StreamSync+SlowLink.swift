internal import ReelCore

// Reading by states: on a connection that is slower than the events of a stream, deltas follow each other in place of a
// subscription, for as long as they are shorter than the events.
extension StreamSync {
    /// Ends the subscription, and reads states from now on.
    mutating func behind(_ facts: Facts) -> [Action] {
        guard case .live(let live) = state, start != .beginning, need == .events, facts.takesDelta,
            facts.nowMs >= slowness.notBeforeMs
        else { return [] }
        let isStillSlow = slowness.triedMs.map { facts.nowMs - $0 < Self.trialMs } ?? false
        slowness.trialMs = isStillSlow ? min(2 * slowness.trialMs, Self.trialMaxMs) : Self.trialMs
        slowness.sinceMs = facts.nowMs
        reading = .states(isRecent: facts.seq >= live.head)
        if keepsLoad() { return [.unsubscribe] }
        let ended = cancellations
        let (load, actions) = beginLoad(facts)
        state = .loading(load)
        return [.unsubscribe] + ended + actions
    }

    /// Waits until the next state is due. Without a recent state it is due at once.
    mutating func readStates(_ facts: Facts) -> [Action] {
        beginsNow = false
        let isRecent = reading == .states(isRecent: true)
        state = .polled(Poll(polledMs: facts.nowMs, pauseMs: Self.statePauseMs))
        return [.startTimer(.poll, ms: isRecent ? Self.statePauseMs : 0)]
    }

    /// Requests the next state. After repeated failures, and if the state cannot be continued by a delta, the events
    /// are read again. After a while they are tried.
    mutating func loadNextState(_ facts: Facts) -> [Action] {
        let isTrial = facts.nowMs - slowness.sinceMs >= slowness.trialMs
        guard facts.takesDelta, failures.load < Self.loadFailuresMax, !isTrial else {
            if isTrial { slowness.triedMs = facts.nowMs }
            returnToEvents(facts, isMistake: !isTrial)
            return [.cancelTimer(.poll)] + advance(facts)
        }
        let (load, actions) = beginLoad(facts)
        state = .loading(load)
        // A load takes no place among the polls that run at the same time.
        return [.cancelTimer(.poll)] + actions
    }

    /// Decides after a state if the next one is read as well.
    ///
    /// - Parameters:
    ///   - helps: true if the state was newer, and shorter than the events that it has replaced.
    ///   - isRecent: true if the connected node was asked for the state.
    ///   - facts: the facts.
    mutating func stateInstalled(helps: Bool, isRecent: Bool, _ facts: Facts) {
        guard reading != .events else { return }
        guard helps else {
            return returnToEvents(facts, isMistake: facts.nowMs - slowness.sinceMs < Self.shortMs)
        }
        if isRecent { reading = .states(isRecent: true) }
    }

    /// Reads the events again. `isMistake`: true if the states were no help. They are not read then for a while.
    private mutating func returnToEvents(_ facts: Facts, isMistake: Bool) {
        reading = .events
        slowness.pauseMs = isMistake ? min(max(Self.shortMs, 2 * slowness.pauseMs), Self.trialMaxMs) : 0
        slowness.notBeforeMs = facts.nowMs + slowness.pauseMs
    }
}
