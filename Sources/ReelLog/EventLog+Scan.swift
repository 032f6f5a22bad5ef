public import ReelCore

extension EventLog {
    /// Calls `body` with all records `from ... to` of a partition, in order, in batches of about 1 MiB; without `to` up
    /// to the log's end as of then. Errors: those of `piece`, and the body's.
    public func scan(
        _ partition: Int,
        from: Seq,
        to: Seq? = nil,
        _ body: (RecordBatch) throws -> Void
    ) throws {
        let last = if let to { to } else { try bounds(partition).last }
        var next = from
        while next <= last {
            let batch = try piece(partition, from: next, to: last)
            try body(batch)
            next = batch.seqs.upperBound
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
