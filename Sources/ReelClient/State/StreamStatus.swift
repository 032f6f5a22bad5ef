public import ReelCore

/// The status of a stream on this device, for a user interface.
public struct StreamStatus: Sendable, Hashable, Codable {
    /// The part of the stream that this device has.
    public enum Content: Sendable, Hashable, Codable {
        /// The device has nothing of the stream, and nothing is arriving. An object that is absent may exist.
        case neverSynced
        /// The first state is arriving. `bytes` is the number of its bytes that have arrived, in all attempts of this
        /// run. `of` is that number once it has arrived; nil: the node has not named the length.
        case loading(bytes: Int64, of: Int64?)
        /// The device has a state of the stream, and later events are missing. `seqs` is the number of seqs of the
        /// partition up to the last one that the device has heard of; nil: the number is not known, because the log was
        /// replaced. Other streams of the partition have seqs too.
        case behind(seqs: Int64?)
        /// The device has everything that it has heard of. `connection` says if it hears of new events.
        case upToDate
    }

    /// The way in which the device gets new events.
    public enum Connection: Sendable, Hashable, Codable {
        /// The stream is not open.
        case closed
        /// No node is connected. The client tries again.
        case offline
        /// A node is connected, and the events of the stream are requested.
        case connecting
        /// Events are pushed.
        case live
        /// Without a subscription, what is new is requested now and then. Either the node has no room for another
        /// subscription, which is a problem with the code `limit`. Or the connection is slower than the events.
        case polled
        /// The client waits before it tries again.
        case paused
        /// The stream has stopped with this error. Another token, connection or epoch restarts it.
        case failed(ErrorCode)
    }

    /// The own events that wait. An event of `enqueue` counts once the client has taken it; see
    /// `EnqueuedEvent.stored()`.
    public struct Pending: Sendable, Hashable, Codable {
        /// The number of events. Merged events count as one.
        public internal(set) var count = 0
        /// The time of the oldest of them, in milliseconds since 1970. For an event of an earlier run it is the time at
        /// which the stream was opened: the event is at least that old.
        public internal(set) var sinceMs: Int64?
        /// The reason why the oldest one still waits.
        public internal(set) var reason: QueuedEvent.Reason?
    }

    /// The part of the stream that is here.
    public internal(set) var content = Content.neverSynced
    /// The way in which new events arrive.
    public internal(set) var connection = Connection.closed
    /// The last seq of the partition up to which everything is folded; −1: nothing yet.
    public internal(set) var seq = Seq.none
    /// The identity of the log; nil until it is known. A seq has a meaning only together with its epoch.
    public internal(set) var epoch: Epoch?
    /// The last time at which the device was up to date, in milliseconds since 1970 by the device's wall clock. Nil if
    /// it never was. If the process was killed, it is the time of the last change that was stored before.
    public internal(set) var upToDateMs: Int64?
    /// The own events that wait.
    public internal(set) var pending = Pending()
    /// The present problems of the stream. Those of the whole client are in `SyncStatus`.
    public internal(set) var problems: [SyncProblem] = []

    /// The number of own events that wait.
    public var pendingCount: Int { pending.count }
    /// True if the device has everything that it has heard of, and hears of new events.
    public var isUpToDate: Bool { content == .upToDate && (connection == .live || connection == .polled) }
}
