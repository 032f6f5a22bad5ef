public import ReelCore

extension EventLog {
    /// Calls `body` with all records `from ... to` of a partition, in order, in batches of about 1 MiB; without `to` up
    /// to the log's end as of then. Errors: those of `piece`, and the body's.
    ///
    /// `passing` is called with each range of seqs that cannot be read, where that is passed; nil: damage is an error.
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

    /// The next records of a range that the log is known to have, about 1 MiB of them. `log_unavailable` where it
    /// answers with none: what it has was not read, which must not pass for an end.
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
