internal import ReelCore

/// What the client keeps of one open stream. Belongs to the client's actor.
final class StreamState {
    /// How far the way to live events is.
    enum Phase: Equatable {
        /// Waits for a connection, or for its moment to subscribe.
        case idle
        /// A snapshot or delta is on its way.
        case catchingUp
        /// `subscribe` was sent.
        case subscribing
        /// Events are pushed.
        case live
        /// The connection has no place for its subscription: it is asked for by HTTP from time to time.
        case polled
        /// Does not go on by itself.
        case stopped
    }

    /// Missing seqs that were asked for.
    struct Fetching {
        var ranges: SeqRanges
        var request: (any TransportRequest)?
        var deadline: any TransportRequest
    }

    /// A snapshot or delta that was asked for.
    struct CatchUp {
        let request: any TransportRequest
        var deadline: any TransportRequest
        /// Something of the answer has come.
        var hasBegun = false
    }

    /// A poll that was sent.
    struct Poll {
        let request: any TransportRequest
        var deadline: any TransportRequest
    }

    /// Somebody who waits until a seq is folded.
    struct Waiter {
        var number: Int
        var seq: Seq
        var continuation: CheckedContinuation<Void, any Error>
    }

    let name: StreamName
    let start: SyncStart
    /// Its row in the store; 0 where nothing is kept.
    let row: Int64
    var outbox: Outbox
    var view: View?
    /// The fold of the epoch that was left, as long as that of the next one has not come.
    var former: Fold?
    /// The epoch in which the bases of the queue count, as long as no state is there that says it.
    var queueEpoch: Epoch?
    /// What the queue adds to what the app sees; nil: nobody has looked yet.
    var overlay: Overlay?
    /// The fold below the overlay is another one.
    var isReplaced = false
    /// What looks different since the readers of changes were told.
    var news: Set<Overlay.Key> = []
    var phase = Phase.idle
    /// It was stopped for what another token or another connection may allow.
    var isRefused = false
    /// A node has said that its log is not the one that this device knows, and no node another thing since.
    var isDoubted = false
    /// Since when a node owes an answer to what was published; nil: nothing that was sent waits for one.
    var unansweredSinceMs: Int64?

    /// The fold of a snapshot or delta that came before the number of partitions was known.
    var arrived: (fold: Fold, isDelta: Bool)?
    /// The log has another epoch than the queue's bases: the next snapshot settles what was consumed.
    var isFromOldEpoch = false
    var catchUp: CatchUp?
    var catchUpFailures = 0
    /// The app was told that no node has the stream's state.
    var isToldToWait = false
    /// True once the device has had the whole stream: from a snapshot, or by folding up to the head of a subscription.
    /// An object that a complete state lacks did not exist at that moment.
    var isComplete = false
    /// A snapshot or delta was read since the stream was opened.
    var isCaughtUp = false
    /// A subscription has been live since the stream was opened: the next one goes on where that one ended.
    var hasBeenLive = false
    /// Nothing is sent before this seq is folded, the head as of the subscription: only there it shows which bases are
    /// below the horizon.
    var sendsFrom: Seq = .none
    /// Of a stream that is polled: the fold has reached the head in this turn, so that events may be handed over.
    var isCurrent = false
    var poll: Poll?
    /// When it was polled last, and how soon it may be polled again while its queue waits.
    var polledMs: Int64 = 0
    var pollPauseMs: Int64 = 0
    var pollFailures = 0
    /// When the node has refused its subscription on this connection because there were too many.
    var refusedMs: Int64?
    /// The app has been told that it has no place, and it has had none since.
    var isLimitTold = false
    /// A delta does not reach so far back.
    var needsSnapshot = false
    /// True if a delta did not fit the folded state. The next subscription decides: it compares the last record with
    /// the log. If the log is the same, the state is wrong and is replaced by a snapshot.
    var isContradicted = false
    var fetching: Fetching?
    var fetchFailures = 0
    var retry: (any TransportRequest)?

    // What the store does not have yet.
    var unwrittenWrites: [Outbox.Write] = []
    var unwritten: [DeliveredEvent] = []
    var unwrittenState = UnwrittenState()
    /// The state that is not written yet is the first of another epoch.
    var unwrittenEpoch = false
    var isDirty = false
    var eventsBehindState = 0

    // What the app waits for.
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

    /// The next subscription shows what comes from now on, whatever is missing before.
    var beginsNow: Bool { start == .now && !hasBeenLive }

    /// A node has said welcome: what went wrong before says nothing of it, and what has not begun to come by now is
    /// asked of it.
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

    /// Another token or another connection is there: what was refused is tried again. False if nothing was.
    @discardableResult
    func allow() -> Bool {
        guard isRefused else { return false }
        isRefused = false
        phase = .idle
        catchUpFailures = 0
        view?.resume()
        return true
    }

    /// Lets go of everything that is under way on a connection.
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
