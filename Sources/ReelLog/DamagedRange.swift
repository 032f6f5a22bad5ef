public import ReelCore

/// A range of seqs of a partition that cannot be read. Their records are lost.
public struct DamagedRange: Equatable, Sendable {
    /// The partition's number.
    public var partition: Int
    /// The seqs that cannot be read.
    public var seqs: ClosedRange<Seq>
    /// The reason: what was found there, a sentence without a full stop.
    public var reason: String

    /// Creates a range of seqs that cannot be read, with the reason.
    public init(partition: Int, seqs: ClosedRange<Seq>, reason: String) {
        self.partition = partition
        self.seqs = seqs
        self.reason = reason
    }
}

extension EventLog {
    /// Returns the bounds of a partition. If its first row is damaged, the bounds start at 0.
    ///
    /// - Throws: The errors of `bounds`.
    public func boundsPassingDamage(_ partition: Int) throws(LogError) -> LogBounds {
        do throws(LogError) {
            return try bounds(partition)
        } catch {
            guard error.code == .damaged, let found = try readable(partition, from: 0) else { throw error }
            return LogBounds(first: 0, last: found.last)
        }
    }

    /// Returns the range of seqs that cannot be read, after a read of `from` has failed with `error`.
    ///
    /// - Parameters:
    ///   - partition: The partition's number.
    ///   - from: The first seq of the range.
    ///   - to: The last seq that the range may have.
    ///   - error: The error of the read.
    /// - Throws: `error` itself if it is not `damaged`, or if this log cannot skip damage.
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
