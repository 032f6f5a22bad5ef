internal import ReelCore

// The connection, the token and the log.
extension StreamSync {
    /// Begins to synchronise the stream. Without effect if it is open.
    mutating func opened(_ opening: Opening, _ facts: Facts) -> [Action] {
        guard state == .idle else { return [] }
        self = StreamSync(start: start, gapSource: gapSource, isComplete: isComplete)
        link = opening.link
        hasPlace = opening.hasPlace
        if opening.isOfFormerEpoch { need = .nextEpoch }
        return advance(facts)
    }

    /// Cancels everything. The stream does nothing until it is opened again.
    mutating func closed() -> [Action] {
        let actions = cancellations
        state = .idle
        link = nil
        return actions
    }

    /// Resets the failure counts, because earlier failures say nothing about this node. Cancels a load whose answer has
    /// not begun, so that this node is asked.
    mutating func connectionOpened(_ link: Link, hasPlace: Bool, _ facts: Facts) -> [Action] {
        guard self.link == nil else { return [] }
        self.link = link
        self.hasPlace = hasPlace
        failures = Failures()
        refusedMs = nil
        if facts.nowMs - slowness.lostMs >= Self.awayMs { reading = .events }
        switch state {
        case .loading(let load):
            switch load.step {
            case .asked: return cancellations + advance(facts)
            case .arriving: return []
            case .loaded(let loaded): return install(loaded)
            }
        case .paused: return cancellations + advance(facts)
        case .failed: return [.resume] + advance(facts)
        // These states need a connection, and there was none.
        case .idle, .subscribing, .live, .polled: return []
        }
    }

    /// A load continues without the connection. A stream that has failed restarts with the next connection.
    mutating func connectionLost(_ facts: Facts) -> [Action] {
        if link != nil { slowness.lostMs = facts.nowMs }
        link = nil
        if reading != .events { reading = .states(isRecent: false) }
        loadIsOld()
        switch state {
        case .loading, .failed: return []
        case .live: if keepsLoad() { return [] }
        case .idle, .subscribing, .polled, .paused: break
        }
        let actions = cancellations
        state = .paused(.offline)
        return actions
    }

    /// Leaves the connected node. The client connects to another one.
    mutating func leaveNode(_ error: ReelError, _ facts: Facts) -> [Action] {
        connectionLost(facts) + [.leaveNode(error)]
    }

    /// Retries what the former token did not allow.
    mutating func tokenChanged(_ facts: Facts) -> [Action] {
        guard case .failed = state else { return [] }
        failures.load = 0
        return [.resume] + advance(facts)
    }

    /// Reads the state again from the next connection. This also restarts a stream that has failed. A state that has
    /// arrived is kept, because it may be of the new epoch.
    mutating func stateDropped(need: Need) -> [Action] {
        guard link == nil else { return [] }
        self.need = need
        reading = .events
        switch state {
        case .loading(let load):
            if case .loaded = load.step { return [] }
            let actions = cancellations
            state = .paused(.offline)
            return actions
        case .failed:
            state = .paused(.offline)
            return [.resume]
        case .paused:
            let actions = cancellations
            state = .paused(.offline)
            return actions
        // These states need a connection, and there is none.
        case .idle, .subscribing, .live, .polled: return []
        }
    }

    /// Subscribes to a polled stream that has got a subscription, or polls a stream that has lost it.
    mutating func placeChanged(_ hasPlace: Bool, _ facts: Facts) -> [Action] {
        self.hasPlace = hasPlace
        switch state {
        case .live where !hasPlace, .subscribing where !hasPlace: return [.unsubscribe] + endSubscription(facts)
        case .polled where hasPlace && refusedMs == nil && reading == .events: return cancellations + advance(facts)
        default: return []
        }
    }
}
