internal import ReelCore

// Reading by states: on a connection that is slower than the events of a stream, deltas follow each other in place of a
// subscription, for as long as they are shorter than the events.
extension StreamSync {
    /// Ends the subscription, and reads states from now on.
    mutating func behind(_ facts: Facts) -> [Action] {
        guard case .live(let live) = state, start != .beginning, need == .events, facts.takesDelta else { return [] }
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
        let wait = Action.startTimer(.poll, ms: isRecent ? Self.statePauseMs : 0)
        return isRecent ? [.notify(.stateRead), wait] : [wait]
    }

    /// Requests the next state. After repeated failures, and if the state cannot be continued by a delta, the events
    /// are read again.
    mutating func loadNextState(_ facts: Facts) -> [Action] {
        guard facts.takesDelta, failures.load < Self.loadFailuresMax else {
            reading = .events
            return [.cancelTimer(.poll)] + advance(facts)
        }
        let (load, actions) = beginLoad(facts)
        state = .loading(load)
        // A load takes no place among the polls that run at the same time.
        return [.cancelTimer(.poll)] + actions
    }

    /// Decides after a state if the next one is read as well.
    mutating func stateInstalled(isTaken: Bool, _ facts: Facts) {
        guard reading != .events else { return }
        reading = isTaken && facts.isStateShorter ? .states(isRecent: true) : .events
    }
}
