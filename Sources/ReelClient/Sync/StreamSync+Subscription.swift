internal import ReelCore

// The live subscription, and the gaps below the seqs that it has proven.
extension StreamSync {
    /// Begins the live state, or loads a state if the subscription shows that one is needed.
    mutating func subscribed(head: Seq, _ facts: Facts) -> [Action] {
        guard state == .subscribing else { return [] }
        // The subscription compared the last record: the log is the same, so the folded state is wrong.
        if need == .proof { need = .snapshot }
        // Only this head shows how far the device is behind.
        if wantsState(facts) { return [.unsubscribe] + advance(facts) }
        state = .live(Live(head: head))
        isDoubted = false
        beginsNow = false
        told.remove(.limited)
        failures.load = 0
        return [.notify(.live)] + fill(facts)
    }

    /// Subscribes again, because the node has stopped live delivery.
    mutating func lagged(_ facts: Facts) -> [Action] {
        guard case .live = state else { return [] }
        return endSubscription(facts)
    }

    /// Records that the state is complete, once the head of the subscription is folded.
    mutating func folded(_ facts: Facts) -> [Action] {
        if case .live(let live) = state, facts.seq >= live.head { isComplete = true }
        return []
    }

    // MARK: Gaps

    /// Requests the missing seqs, if nothing is running for them.
    mutating func fill(_ facts: Facts) -> [Action] {
        guard case .live(var live) = state, live.gap == nil, let link, let first = facts.missing.ranges.first else {
            return []
        }
        let isWide = facts.missing.count >= Self.deltaFromSeqs && failures.load < Self.loadFailuresMax
        if need == .snapshot || (isWide && start != .beginning) {
            let (load, actions) = beginLoad(facts)
            live.gap = .loading(load)
            state = .live(live)
            return actions
        }
        let prefersPeers = (gapSource == .peers) == failures.fetch.isMultiple(of: 2)
        let usesPeers = prefersPeers && (facts.nodes > 1 || gapSource == .peers)
        let ranges = usesPeers ? SeqRanges([first]) : Self.cut(facts.missing, to: link.fetchSeqs)
        live.gap = .fetching(ranges)
        state = .live(live)
        let timeout = Action.startTimer(.answer, ms: Self.answerMs(failures.fetch))
        return [timeout, .fetch(ranges, from: usesPeers ? .peer : .connection)]
    }

    /// Returns the first ranges, as many as one fetch may have.
    private static func cut(_ missing: SeqRanges, to seqsMax: Int64) -> SeqRanges {
        var ranges: [ClosedRange<Seq>] = []
        var left = min(seqsMax, ClientFrame.fetchSeqs)
        for range in missing.ranges.prefix(ClientFrame.fetchRanges) where left > 0 {
            let upper = min(range.upperBound, range.lowerBound + left - 1)
            ranges.append(range.lowerBound...upper)
            left -= upper - range.lowerBound + 1
        }
        return SeqRanges(ranges)
    }

    /// Looks for missing seqs, and ends a fetch of which nothing is missing any more.
    mutating func proven(isAnswer: Bool, _ facts: Facts) -> [Action] {
        guard case .live(var live) = state else { return [] }
        guard case .fetching(let ranges) = live.gap else { return fill(facts) }
        // The next piece of the answer has a new timeout.
        guard ranges.intersection(facts.missing).isEmpty else { return isAnswer ? progressed(.fetch) : [] }
        failures.fetch = 0
        live.gap = nil
        state = .live(live)
        return [.cancelFetch, .cancelTimer(.answer)] + fill(facts)
    }

    /// Continues after a fetch by HTTP, with the seqs that are still missing.
    mutating func fetchAnswered(_ facts: Facts) -> [Action] {
        guard case .live(var live) = state, case .fetching = live.gap else { return [] }
        failures.fetch = 0
        live.gap = nil
        state = .live(live)
        return [.cancelTimer(.answer)] + fill(facts)
    }

    /// Asks again after a pause, and another node if there is one.
    mutating func fetchFailed(_ error: ReelError, afterMs: Int64) -> [Action] {
        guard case .live(let live) = state, case .fetching = live.gap else { return [] }
        failures.fetch += 1
        if error.code == .truncated { requireSnapshot() }
        return fetchPostponed(ms: afterMs)
    }

    /// Asks again, and another node if there is one.
    mutating func fetchIsLate(_ facts: Facts) -> [Action] {
        guard case .live(var live) = state, case .fetching = live.gap else { return [] }
        failures.fetch += 1
        live.gap = nil
        state = .live(live)
        return [.cancelFetch] + fill(facts)
    }

    /// Asks again after a pause.
    mutating func fetchPostponed(ms: Int64 = 100) -> [Action] {
        guard case .live(var live) = state, case .fetching = live.gap else { return [] }
        live.gap = .waiting
        state = .live(live)
        return [.cancelTimer(.answer), Self.retry(ms: ms)]
    }

    // MARK: Reading

    /// True if the connection has a subscription for the stream, or `subscribe` was sent.
    var isSubscribed: Bool {
        switch state {
        case .subscribing, .live: true
        case .idle, .loading, .polled, .paused, .failed: false
        }
    }

    var isLive: Bool { if case .live = state { true } else { false } }

    var isPolled: Bool { if case .polled = state { true } else { false } }

    /// True if seqs were requested and not all have arrived.
    var isFetching: Bool {
        guard case .live(let live) = state, case .fetching = live.gap else { return false }
        return true
    }

    /// True if the stream takes one of the subscriptions that the node allows.
    var isReading: Bool {
        switch state {
        case .idle, .failed: false
        case .loading, .subscribing, .live, .polled, .paused: true
        }
    }

    /// True if the fold up to `seq` is recent enough for handing over events. It shows which bases are below the
    /// horizon, and which objects other devices have deleted.
    func maySend(at seq: Seq) -> Bool {
        switch state {
        case .live(let live): seq >= live.head
        case .polled where reading != .events, .loading where reading != .events:
            reading == .states(isRecent: true)
        case .polled(let poll): poll.step == .current
        case .idle, .loading, .subscribing, .paused, .failed: false
        }
    }
}
