/// The reason why a record of the log has no effect for any reader. Its seq is covered nevertheless.
public struct VoidRecord: Error, Hashable, Sendable {
    /// The kinds of reasons; the raw values are those of the metrics.
    public enum Reason: String, CaseIterable, Sendable {
        /// The key is not the name of a stream.
        case badKey = "bad_key"
        /// The key belongs to another partition: its producer computes partitions in another way.
        case wrongPartition = "wrong_partition"
        /// The value is not an event in canonical form.
        case badEvent = "bad_event"
        /// The record is a seed outside the sequence of seeds at the beginning of the epoch.
        case lateSeed = "late_seed"
        /// The value of a record with the barriers' key is not a barrier.
        case badBarrier = "bad_barrier"
        /// The record is after the end of the epoch.
        case behindEnd = "behind_end"
        /// There is no record at this seq, for example because a transaction marker occupies it.
        case hole
    }

    /// The kind of the reason.
    public var reason: Reason
    /// A text that says what was found and what was expected.
    public var detail: String

    /// Creates the reason for a record without effect.
    public init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }
}
