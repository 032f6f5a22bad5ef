internal import ReelCore

/// The state that the client keeps for one open stream. Belongs to the client's actor.
final class StreamState {
    /// A call that waits until a seq is folded.
    struct Waiter {
        var number: Int
        var seq: Seq
        var continuation: CheckedContinuation<Void, any Error>
    }

    let opening: StreamOpening
    var name: StreamName { opening.name }
    /// The `ref` of the last `subscribe`.
    var subscribeRef = SyncClient.Ref.subscribe
    /// The progress towards live events.
    var sync: StreamSync
    /// The requests and timers that the progress needs.
    var handles = StreamHandles()
    /// The number of the stream in the store.
    let row: Int64
    var outbox: Outbox
    var view: View?
    /// The fold of the former epoch, until the first fold of the next epoch has arrived.
    var former: Fold?
    /// The epoch of the queue's bases, while there is no state that names it.
    var queueEpoch: Epoch?
    /// The changes that the queue makes to the visible objects.
    var overlay: Overlay
    /// The changes of the readable content in this turn.
    var readable = ReadableChanges()
    /// The generations of replaced states, which are of no use once the present state is stored.
    var replacedLayers: [Int64] = []
    /// The running load of a state; nil: none is running.
    var load: StateLoad?
    /// A snapshot that was cut, and that the next load continues.
    var cutLoad: DeviceStore.Load?
    /// The replacement of the fold below the overlay since the overlay was updated; nil: there was none.
    var replacement: Replacement?
    /// The objects that look different since the readers of changes were last told. It has other objects than
    /// `unshown`: a commit in the middle of a turn shows them and tells nobody, and the first reader of changes forgets
    /// the earlier ones.
    var news: Set<Overlay.Key> = []
    /// The recorder of visible changes; nil: no app has asked for the changes since a token.
    var recorder: ChangeRecorder?
    /// The time since which a node owes an answer to published events; nil if no sent event waits for an answer.
    var unansweredSinceMs: Int64?

    // The changes that are not written to the store yet.
    var unwrittenWrites: [Outbox.Write] = []
    var unwritten: [DeliveredEvent] = []
    /// The seq of the folded state that the store has; −1: none.
    var storedSeq = Seq.none
    /// True if the folded state must be written with the next commit.
    var isStateDue = false
    /// True if the state that is not written yet is the first one of another epoch.
    var unwrittenEpoch = false
    var isDirty = false
    /// The progress of the first state; nil: none is arriving.
    var progress: LoadProgress?
    /// True if the status must be shown at the end of the turn.
    var isStatusDue = false
    /// The last time at which the stream was up to date, by the wall clock in milliseconds; nil: never.
    var upToDateMs: Int64?
    /// `upToDateMs` as the store has it.
    var storedUpToDateMs: Int64?
    /// The events that were received since the folded state was written, and their bytes.
    var eventsBehindState = 0
    var bytesBehindState = 0
    /// The cost of the events on a slow connection.
    var eventCost = EventCost()
    /// The number of the last turn in which the stream has changed.
    var lastTurn: Int64 = 0

    // The calls of the app that wait.
    var publications: [Int64: [PublishHandle]] = [:]
    /// The own events that a state has covered, and whose outcomes are asked for.
    var covered = CoveredEvents()
    var commits: [(ReelError?) -> Void] = []
    var waiters: [Waiter] = []
    /// The enqueued events that the next commit stores.
    var enqueued: [(EnqueuedEvent, PublishHandle)] = []
    var flushes: [Flush] = []
    /// The readers of changes.
    let feeds = Feeds(ObjectChangeBatch.gather)
    /// The observers of the readable content.
    let observers = ContentObservers()
    /// The changes of the readable content that are not shown yet. The next commit shows and records them.
    var unshown = ContentChanges()
    var batch: ObjectChangeBatch?
    var sendTimer: (any TransportHandle)?

    /// Creates a stream whose overlay is empty. The caller lays the events of the queue.
    init(
        _ name: StreamName,
        start: StartPosition,
        _ gapSource: SyncClient.GapSource = .connection,
        row: Int64,
        outbox: Outbox,
        opening: Int = 0
    ) {
        self.opening = StreamOpening(name: name, number: opening)
        sync = StreamSync(start: start, gapSource: gapSource)
        self.row = row
        self.outbox = outbox
        overlay = Overlay(of: EmptyCollection(), site: outbox.site, over: nil, stream: name, isComplete: false)
    }

    /// The last seq folded.
    var seq: Seq { view?.seq ?? .none }

    /// The results that the next step of the view has to note.
    var newProgress: View.Progress { View.Progress(others: recorder == nil ? nil : []) }
}
