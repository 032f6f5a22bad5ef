internal import Synchronization

/// What a log on Kafka has counted since it was opened.
final class KafkaCounters: Sendable {
    let holes = Atomic(0)
    let rereads = Atomic(0)
    let doubts = Atomic(0)
    let rebuilds = Atomic(0)
}

/// What a log on Kafka has met since it was opened, for metrics.
public struct KafkaLogCounts: Equatable, Sendable {
    /// Offsets without a record that were read twice before they were believed.
    public var holes: Int
    /// Ranges that were read again because an offset was missing.
    public var rereads: Int
    /// How often a tail stopped and looked at the log again before it went on: after a lost connection, a missing
    /// offset, an error.
    public var doubts: Int
    /// Producers that were replaced: they met a fatal error, or their batches had become too large for the brokers.
    public var rebuilds: Int
    /// Records that wait for the brokers.
    public var recordsInFlight: Int
    /// Their keys and values.
    public var bytesInFlight: Int
}
