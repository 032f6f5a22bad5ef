internal import ReelCore

// Errors of nodes, and the end of subscriptions.
extension StreamSync {
    /// Handles an error frame that concerns the stream. Without effect once the stream has failed.
    mutating func refused(_ error: ReelError, _ subject: Subject, _ facts: Facts) -> [Action] {
        if case .failed = state { return [] }
        guard link != nil else { return [] }
        // The two excluded codes are handled without the app.
        let isOfSubscription = subject == .subscription || subject == .subscribe
        let isTold = isOfSubscription && error.code != .truncated && error.code != .epochChanged
        return (isTold ? [.notify(.notSubscribed(error))] : []) + handle(error, subject, facts)
    }

    /// Takes the step that follows from an error.
    private mutating func handle(_ error: ReelError, _ subject: Subject, _ facts: Facts) -> [Action] {
        switch error.code {
        // The node's log was replaced under it; only `welcome` names the next one.
        case .epochChanged: return leaveNode(error, facts)
        case .aheadOfLog, .diverged:
            // The node's own log may be the one that is lost, and another node may serve the device's log.
            guard isDoubted, subject != .subscription else {
                isDoubted = true
                return leaveNode(error, facts)
            }
            return endingSubscription + stop(error)
        case _ where subject == .fetch: return fetchFailed(error, afterMs: error.retryMs ?? 200)
        case .unauthorized, .forbidden, .badStream: return stop(error)
        case _ where state != .subscribing && !(isSubscribed && subject == .subscription): return []
        case .truncated:
            requireSnapshot()
            return endSubscription(error.code, afterMs: 50)
        case .limit:
            refusedMs = facts.nowMs
            return endSubscription(facts)
        default: return endSubscription(error.code, afterMs: error.retryMs ?? 500)
        }
    }

    /// Takes the next step at once, because the node has ended the subscription. A load continues.
    mutating func endSubscription(_ facts: Facts) -> [Action] {
        if keepsLoad() { return [] }
        return cancellations + advance(facts)
    }

    /// Subscribes again after a pause, because the node has refused or ended the subscription. A load continues.
    private mutating func endSubscription(_ code: ErrorCode, afterMs: Int64) -> [Action] {
        if keepsLoad() { return [] }
        return cancellations + pause(code, ms: afterMs)
    }

    /// Leaves the live state, and keeps the load that runs beside it. Returns false if none runs.
    mutating func keepsLoad() -> Bool {
        guard let load = liveLoad else { return false }
        state = .loading(load)
        return true
    }

    /// Stops at a record that this version cannot read. The node may have invented it, so a later connection tries
    /// again.
    mutating func unreadable(_ error: ReelError) -> [Action] {
        if case .failed = state { return [] }
        return [.notify(.notSubscribed(error))] + endingSubscription + stop(error)
    }

    /// The action that ends a live subscription at the node, which does not know that the stream stops.
    private var endingSubscription: [Action] { if case .live = state { [.unsubscribe] } else { [] } }

    /// Stops the stream, until another token, connection or epoch comes.
    private mutating func stop(_ error: ReelError) -> [Action] {
        let actions = cancellations
        if reading != .events { reading = .states(isRecent: false) }
        state = .failed(error.code)
        return actions + [.stop(error)]
    }
}
