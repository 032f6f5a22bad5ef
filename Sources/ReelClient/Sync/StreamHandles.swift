internal import ReelCore

/// The running requests and timers of a stream, at most one of each kind, and the state that has arrived. The stream's
/// state machine decides about them, and does not hold them.
struct StreamHandles {
    /// A snapshot or delta that has arrived.
    struct LoadedState {
        var fold: Fold
        var isDelta: Bool
        /// True if the fold lists everything that the delta has changed. Rows that were written are not listed.
        var listsChanges: Bool
    }

    private var requests: [StreamSync.Request: any TransportHandle] = [:]
    private var timers: [StreamSync.Timer: any TransportHandle] = [:]
    /// The request for outcomes of own events, and its deadline or the pause before the next one.
    private var outcomes: (request: (any TransportHandle)?, timer: any TransportHandle)?
    /// The state that has arrived and is not installed yet.
    var loaded: LoadedState?

    /// True if a request by HTTP of this kind is running.
    func isRunning(_ request: StreamSync.Request) -> Bool { requests[request] != nil }

    /// Keeps the handle of a request, in place of a running one of the same kind.
    mutating func keep(request: StreamSync.Request, _ handle: any TransportHandle) {
        cancel(request: request)
        requests[request] = handle
    }

    /// Cancels the request of this kind. Without effect if it has ended, or if there is none.
    mutating func cancel(request: StreamSync.Request) {
        requests.removeValue(forKey: request)?.cancel()
    }

    /// Keeps the handle of a timer, in place of a running one of the same kind.
    mutating func keep(timer: StreamSync.Timer, _ handle: any TransportHandle) {
        cancel(timer: timer)
        timers[timer] = handle
    }

    /// Cancels the timer of this kind. Without effect if it has fired, or if there is none.
    mutating func cancel(timer: StreamSync.Timer) {
        timers.removeValue(forKey: timer)?.cancel()
    }

    /// True if outcomes are asked for, or will be after a pause.
    var isAskingOutcomes: Bool { outcomes != nil }

    /// True if a request for outcomes is running.
    var isRequestingOutcomes: Bool { outcomes?.request != nil }

    /// Keeps a request for outcomes and its deadline, or without a request the pause before the next one.
    mutating func keep(outcomes request: (any TransportHandle)?, until timer: any TransportHandle) {
        cancelOutcomes()
        outcomes = (request, timer)
    }

    /// Replaces the deadline of the request for outcomes.
    mutating func extend(outcomesUntil timer: any TransportHandle) {
        outcomes?.timer.cancel()
        outcomes?.timer = timer
    }

    /// Cancels the request for outcomes, or the pause before it.
    mutating func cancelOutcomes() {
        outcomes?.request?.cancel()
        outcomes?.timer.cancel()
        outcomes = nil
    }

    /// Cancels everything, because the client has ended.
    mutating func cancelAll() {
        for request in StreamSync.Request.allCases { cancel(request: request) }
        for timer in StreamSync.Timer.allCases { cancel(timer: timer) }
        cancelOutcomes()
        loaded = nil
    }
}
