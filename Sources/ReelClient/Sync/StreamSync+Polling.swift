internal import ReelCore

// Polling by HTTP, for a stream without a subscription. Its events arrive late, and its queue is still sent.
extension StreamSync {
    /// Begins to poll, because the connection has no subscription for the stream.
    mutating func beginPolling(_ facts: Facts) -> [Action] {
        // A polled stream has no moment from which events are pushed.
        beginsNow = false
        state = .polled(Poll(polledMs: facts.nowMs))
        let isNew = told.insert(.limited).inserted
        return [.notify(.noPlace(isNew: isNew)), .startTimer(.poll, ms: 0)]
    }

    /// Sends a poll. After a while a refused subscription is tried again instead.
    mutating func pollIsDue(_ facts: Facts) -> [Action] {
        guard case .polled(var poll) = state, poll.step != .asking else { return [] }
        if reading != .events { return loadNextState(facts) }
        if let refusedMs, facts.nowMs - refusedMs >= Self.idlePollMs {
            self.refusedMs = nil
            return cancellations + advance(facts)
        }
        poll.step = .asking
        poll.polledMs = facts.nowMs
        state = .polled(poll)
        return [.poll, .startTimer(.answer, ms: Self.answerMs(failures.poll))]
    }

    /// Schedules the next poll. Loads a state instead if the poll shows that the stream is far behind.
    mutating func pollAnswered(_ answer: PollAnswer, _ facts: Facts) -> [Action] {
        guard case .polled(var poll) = state, poll.step == .asking else { return [] }
        failures.poll = 0
        isDoubted = false
        let actions: [Action] = [.cancelTimer(.answer)]
        if wantsState(facts) { return actions + advance(facts) }
        guard facts.seq >= answer.head else {
            poll.step = .scheduled
            state = .polled(poll)
            return actions + [.startTimer(.poll, ms: 0)]
        }
        // The stream is at its head, like a live one: events that are handed over now are based on this state.
        poll.step = .current
        let isMoving = answer.isMoving || answer.isQueueEmpty
        poll.pauseMs = isMoving ? Self.pollMs : min(2 * poll.pauseMs, answer.idleMs)
        state = .polled(poll)
        let pauseMs = answer.isQueueEmpty ? answer.idleMs : poll.pauseMs
        return actions + [.notify(.polled), .startTimer(.poll, ms: pauseMs)]
    }

    /// Polls again after a pause, which doubles with each failure.
    mutating func pollFailed(_ error: ReelError, _ facts: Facts) -> [Action] {
        guard case .polled(let poll) = state, poll.step == .asking else { return [] }
        failures.poll += 1
        state = .paused(.retry(error.code))
        switch error.code {
        // An error that says more than "no answer at the moment" is handled like a refused subscription.
        case .epochChanged, .aheadOfLog, .diverged, .badStream, .unauthorized, .forbidden:
            // The poll has ended, and leaves nothing to cancel.
            state = .subscribing
            return [.cancelTimer(.answer)] + refused(error, .subscribe, facts)
        case .truncated:
            requireSnapshot()
            return [.cancelTimer(.answer), Self.retry(ms: 50)]
        default:
            let pauseMs = error.retryMs ?? Self.pollMs << Int64(min(failures.poll, 8))
            return [.cancelTimer(.answer), Self.retry(ms: pauseMs)]
        }
    }

    /// Schedules a poll soon. Either the queue has moved, or an entry may be sent from `notBeforeMs` on and depends on
    /// the present state.
    mutating func pollSoon(notBeforeMs: Int64, _ facts: Facts) -> [Action] {
        guard case .polled(let poll) = state, poll.step != .asking else { return [] }
        let atMs = max(facts.nowMs, notBeforeMs, poll.polledMs + poll.pauseMs)
        return [.startTimer(.poll, ms: atMs - facts.nowMs)]
    }

    /// Polls soon, because the poll will find own events.
    mutating func queueMoved(_ facts: Facts) -> [Action] {
        guard case .polled(var poll) = state else { return [] }
        if reading == .events { poll.pauseMs = Self.pollMs }
        state = .polled(poll)
        return pollSoon(notBeforeMs: facts.nowMs, facts)
    }

    /// Ends the time in which events may be handed over.
    mutating func turnEnded() -> [Action] {
        guard case .polled(var poll) = state, poll.step == .current else { return [] }
        poll.step = .scheduled
        state = .polled(poll)
        return []
    }
}
