public import ReelCore

/// Seqs of a partition that cannot be read: their records are lost.
public struct DamagedRange: Equatable, Sendable {
    /// The partition.
    public var partition: Int
    /// The seqs.
    public var seqs: ClosedRange<Seq>
    /// What was found there, a sentence without a full stop.
    public var reason: String

    /// Seqs that cannot be read, and why.
    public init(partition: Int, seqs: ClosedRange<Seq>, reason: String) {
        self.partition = partition
        self.seqs = seqs
        self.reason = reason
    }
}

extension EventLog {
    /// The ends of a partition, from 0 on where its first row is damaged. Throws the errors of `bounds`.
    public func boundsPassingDamage(_ partition: Int) throws(LogError) -> LogBounds {
        do throws(LogError) {
            return try bounds(partition)
        } catch {
            guard error.code == .damaged, let found = try readable(partition, from: 0) else { throw error }
            return LogBounds(first: 0, last: found.last)
        }
    }

    /// The seqs from `from` up to `to` at most that cannot be read, where a read of `from` has ended with this error.
    /// Throws the error where it is no damage, or where this log cannot pass it.
    public func damage(
        _ partition: Int,
        from: Seq,
        to: Seq,
        _ error: LogError
    ) throws(LogError) -> DamagedRange {
        guard error.code == .damaged, let found = try readable(partition, from: from + 1) else { throw error }
        let end = max(from, min(to, found.first - 1))
        return DamagedRange(partition: partition, seqs: from...end, reason: error.message)
    }
}
