/// Why a record of the log has no effect, for everybody. Its seq is covered all the same.
public struct VoidRecord: Error, Hashable, Sendable {
    /// The kinds, as metrics name them.
    public enum Reason: String, CaseIterable, Sendable {
        /// The key is no stream's name.
        case badKey = "bad_key"
        /// The key belongs into another partition: its producer computes partitions in another way.
        case wrongPartition = "wrong_partition"
        /// The value is no event in canonical form.
        case badEvent = "bad_event"
        /// A seed outside of the row of seeds that an epoch begins with.
        case lateSeed = "late_seed"
        /// The value under the barriers' key is no barrier.
        case badBarrier = "bad_barrier"
        /// It stands behind the end of the epoch.
        case behindEnd = "behind_end"
        /// There is no record at this seq, such as where a transaction's marker stands.
        case hole
    }

    /// The kind.
    public var reason: Reason
    /// What was found and what was expected.
    public var detail: String

    /// A record without effect.
    public init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }
}
