internal import Synchronization

/// The counters of a log on Kafka since it was opened.
final class KafkaCounters: Sendable {
    let holes = Atomic(0)
    let rereads = Atomic(0)
    let doubts = Atomic(0)
    let rebuilds = Atomic(0)
}

/// A snapshot of the counters of a log on Kafka since it was opened, for metrics.
public struct KafkaLogCounts: Equatable, Sendable {
    /// Offsets without a record, each confirmed by a second read.
    public var holes: Int
    /// Ranges that were read again because an offset was missing.
    public var rereads: Int
    /// How many times a tail stopped and revalidated the log before it continued: after a lost connection, a missing
    /// offset, or an error.
    public var doubts: Int
    /// Producers that were replaced, after a fatal error or because their batches had become too large for the brokers.
    public var rebuilds: Int
    /// Records that wait for the brokers.
    public var recordsInFlight: Int
    /// The bytes of their keys and values.
    public var bytesInFlight: Int
}
