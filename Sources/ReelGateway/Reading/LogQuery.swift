import ReelCore

/// A query for events of the log.
struct LogQuery {
    var stream: StreamName
    /// The filter for events; nil: all events.
    var filter: EventFilter?
    var partition: Int
    var from: Seq
    /// The last seq of the answer at most.
    var to: Seq
    /// The maximum size of the events in bytes, unless a single event is larger.
    var bytes: Int
    /// The maximum number of events.
    var events: Int
}

/// The choices of a reader that does not get all events of a stream as they are.
final class ReadOptions {
    /// The filter for events; nil: all events.
    let filter: EventFilter?
    /// True if each event is sent with its outcome.
    let hasOutcomes: Bool

    /// Returns nil if there is no filter and outcomes are not wanted, which keeps most readers small.
    init?(_ filter: EventFilter?, hasOutcomes: Bool) {
        guard filter != nil || hasOutcomes else { return nil }
        self.filter = filter
        self.hasOutcomes = hasOutcomes
    }
}
