internal import ReelCore

/// The state that the client keeps for one open stream. Belongs to the client's actor.
final class StreamState {
    /// The progress of a stream towards live events.
    enum Phase: Equatable {
        /// The stream waits for a connection, or for its turn to subscribe.
        case idle
        /// A snapshot or delta is on its way.
        case catchingUp
        /// `subscribe` was sent.
        case subscribing
        /// Events are pushed.
        case live
        /// The node allows no further subscription on the connection. The stream is polled by HTTP.
        case polled
        /// The stream has stopped, and does not continue without an outside event.
        case stopped
    }

    /// A running request for missing seqs.
    struct Fetching {
        var ranges: SeqRanges
        var request: (any TransportRequest)?
        var deadline: any TransportRequest
    }

    /// A running request for a snapshot or delta.
    struct CatchUp {
        let request: any TransportRequest
        var deadline: any TransportRequest
        /// True if a part of the answer has arrived.
        var hasBegun = false
    }

    /// A running poll.
    struct Poll {
        let request: any TransportRequest
        var deadline: any TransportRequest
    }

    /// A call that waits until a seq is folded.
    struct Waiter {
        var number: Int
        var seq: Seq
        var continuation: CheckedContinuation<Void, any Error>
    }

    let name: StreamName
    let start: SyncStart
    /// The id of the stream's row in the store; 0 if nothing is kept.
    let row: Int64
    var outbox: Outbox
    var view: View?
    /// The fold of the former epoch, until the first fold of the next epoch has arrived.
    var former: Fold?
    /// The epoch of the queue's bases, while there is no state that names it.
    var queueEpoch: Epoch?
    /// The changes that the queue makes to the visible objects; nil if the app has not read the stream yet.
    var overlay: Overlay?
    /// True if the fold below the overlay was replaced.
    var isReplaced = false
    /// The objects that look different since the readers of changes were last told.
    var news: Set<Overlay.Key> = []
    var phase = Phase.idle
    /// True if the stream was stopped for a reason that another token or another connection may remove.
    var isRefused = false
    /// True if a node has said that its log is not the one that this device knows, and no node has contradicted it
    /// since.
    var isDoubted = false
    /// The time since which a node owes an answer to published events; nil if no sent event waits for an answer.
    var unansweredSinceMs: Int64?

    /// The fold of a snapshot or delta that arrived before the number of partitions was known.
    var arrived: (fold: Fold, isDelta: Bool)?
    /// True if the log has another epoch than the queue's bases. The next snapshot settles what was consumed.
    var isFromOldEpoch = false
    var catchUp: CatchUp?
    var catchUpFailures = 0
    /// True if the app was told that no node has the stream's state.
    var isToldToWait = false
    /// True once the device has had the whole stream: from a snapshot, or by folding up to the head of a subscription.
    /// An object that a complete state lacks did not exist at that moment.
    var isComplete = false
    /// True if a snapshot or delta was read since the stream was opened.
    var isCaughtUp = false
    /// True if a subscription has been live since the stream was opened. The next one continues where that one ended.
    var hasBeenLive = false
    /// The head at the time of the subscription. Nothing is sent before this seq is folded, because only then it is
    /// known which bases are below the horizon.
    var sendsFrom: Seq = .none
    /// For a polled stream: true if the fold has reached the head in this turn, so that events may be handed over.
    var isCurrent = false
    var poll: Poll?
    /// The time of the last poll, and the minimum pause before the next one while the queue waits.
    var polledMs: Int64 = 0
    var pollPauseMs: Int64 = 0
    var pollFailures = 0
    /// The time at which the node has refused the subscription because the connection had too many; nil if it has not.
    var refusedMs: Int64?
    /// True if the app was told that the stream has no subscription, and it has had none since.
    var isLimitTold = false
    /// True if the stream needs a snapshot, because a delta does not reach back far enough.
    var needsSnapshot = false
    /// True if a delta did not fit the folded state. The next subscription decides: it compares the last record with
    /// the log. If the log is the same, the state is wrong and is replaced by a snapshot.
    var isContradicted = false
    var fetching: Fetching?
    var fetchFailures = 0
    var retry: (any TransportRequest)?

    // The changes that are not written to the store yet.
    var unwrittenWrites: [Outbox.Write] = []
    var unwritten: [DeliveredEvent] = []
    var unwrittenState = UnwrittenState()
    /// True if the state that is not written yet is the first one of another epoch.
    var unwrittenEpoch = false
    var isDirty = false
    var eventsBehindState = 0

    // The calls of the app that wait.
    var publications: [Int64: [Publication]] = [:]
    var commits: [CheckedContinuation<Void, any Error>] = []
    var waiters: [Waiter] = []
    /// The readers of changes.
    let feeds = Feeds(ChangeBatch.gather)
    var batch: ChangeBatch?
    var sendTimer: (any TransportRequest)?

    init(_ name: StreamName, start: SyncStart, row: Int64, outbox: Outbox) {
        self.name = name
        self.start = start
        self.row = row
        self.outbox = outbox
    }

    /// The last seq folded.
    var seq: Seq { view?.seq ?? .none }

    /// True if the next subscription begins with new events at once, even if earlier ones are missing.
    var beginsNow: Bool { start == .now && !hasBeenLive }

    /// Called when a node has sent `welcome`. Resets the failure counts, because earlier failures say nothing about
    /// this node. Cancels a catch-up whose answer has not begun, so that this node is asked.
    func connected() {
        allow()
        outbox.connected()
        fetchFailures = 0
        catchUpFailures = 0
        pollFailures = 0
        refusedMs = nil
        retry?.cancel()
        retry = nil
        if catchUp?.hasBegun == false { dropCatchUp() }
    }

    /// Allows a retry of what was refused, because there is another token or another connection. Returns false if
    /// nothing was refused.
    @discardableResult
    func allow() -> Bool {
        guard isRefused else { return false }
        isRefused = false
        phase = .idle
        catchUpFailures = 0
        view?.resume()
        return true
    }

    /// Cancels everything that runs on the connection.
    func connectionLost() {
        unansweredSinceMs = nil
        view?.unsubscribed()
        if [.live, .subscribing, .polled].contains(phase) { phase = .idle }
        dropFetch()
        dropPoll()
        isCurrent = false
        retry?.cancel()
        retry = nil
    }

    func dropCatchUp() {
        catchUp?.request.cancel()
        catchUp?.deadline.cancel()
        catchUp = nil
        if phase == .catchingUp { phase = .idle }
    }

    func dropPoll() {
        poll?.request.cancel()
        poll?.deadline.cancel()
        poll = nil
    }

    func dropFetch() {
        fetching?.request?.cancel()
        fetching?.deadline.cancel()
        fetching = nil
    }
}
