public import ReelCore

extension EventLog {
    /// Calls `body` with all records `from ... to` of a partition, in order, in batches of about 1 MiB; ends at the
    /// log's end as of then. Errors: those of `read`, and the body's.
    public func scan(
        _ partition: Int,
        from: Seq,
        to: Seq = largestInteger,
        _ body: (RecordBatch) throws -> Void
    ) throws {
        var next = from
        while next <= to {
            let batch = try read(partition, from: next, to: to, bytes: 1 << 20)
            guard !batch.seqs.isEmpty else { return }
            try body(batch)
            next = batch.seqs.upperBound
        }
    }
}
