public import ReelCore

extension EventLog {
    /// Calls `body` with all records of a partition from `from` to `to`, in order, in batches of about 1 MiB.
    ///
    /// - Parameters:
    ///   - partition: The partition's number.
    ///   - from: The first seq.
    ///   - to: The last seq; nil: the end of the log at the time of the call.
    ///   - passing: Called with each range of seqs that cannot be read, which is then skipped; nil: damage is an error.
    ///   - body: Called with each batch.
    /// - Throws: The errors of `piece`, and those of `passing` and `body`.
    public func scan(
        _ partition: Int,
        from: Seq,
        to: Seq? = nil,
        passing: ((DamagedRange) throws -> Void)? = nil,
        _ body: (RecordBatch) throws -> Void
    ) throws {
        let last = if let to { to } else { try bounds(partition).last }
        var next = from
        while next <= last {
            do {
                let batch = try piece(partition, from: next, to: last)
                next = batch.seqs.upperBound
                try body(batch)
            } catch let error as LogError where error.code == .damaged && passing != nil {
                let damage = try damage(partition, from: next, to: last, error)
                next = damage.seqs.upperBound + 1
                try passing?(damage)
            }
        }
    }

    /// Returns the next records of a range that the log is known to have, about 1 MiB of them.
    ///
    /// - Throws: `log_unavailable` if the log returns no record. Records that the log has were not read then, and the
    ///   caller must not mistake that for the end.
    func piece(_ partition: Int, from: Seq, to: Seq) throws(LogError) -> RecordBatch {
        let batch = try read(partition, from: from, to: to, bytes: 1 << 20)
        guard !batch.seqs.isEmpty else {
            throw LogError(
                .logUnavailable,
                "partition \(partition) answered with nothing from seq \(from) on, expected are records up to \(to)"
            )
        }
        return batch
    }
}
