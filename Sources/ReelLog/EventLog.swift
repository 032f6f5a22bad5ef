public import ReelCore

/// A log: P partitions of records, each append-only and totally ordered; the offset of a record is its seq.
///
/// Every implementation passes one conformance suite (`EventLogConformance` in the tests). No call here may be made on
/// an event loop except `append`, which never blocks.
public protocol EventLog: AnyObject, Sendable {
    /// The identity of this log.
    var epoch: Epoch { get }
    /// P, fixed when the log is created.
    var partitions: Int { get }

    /// The largest record that is taken, key and value together. It may sink: those of a log on Kafka have brokers
    /// that can be told to take less.
    var recordBytesMax: Int { get }

    /// What an operator must know of the log's storage, such as that its file is a copy, and what to do; nil: nothing.
    /// Never blocks.
    var notice: String? { get }

    /// The first seq that can be read and the last one; see `LogBounds` for where there is none. Asks the log itself.
    func bounds(_ partition: Int) throws(LogError) -> LogBounds

    /// Where a read of `from` ends with `damaged`: the first seq from there on that can be read (the last one + 1 where
    /// there is none), and the last seq of the partition. Nil: this log cannot pass damage. May read all that follows.
    func readable(_ partition: Int, from: Seq) throws(LogError) -> LogBounds?

    /// Hands records over, in order per partition. Never blocks. `done` is called once, on a thread of the log, with
    /// the seqs of the records in the order given, or with an error for all. An error does not say that a record is not
    /// in the log. What a log can refuse at once (no such partition, closed) it answers within the call.
    func append(_ records: [LogAppend], to partition: Int, done: @escaping @Sendable (Result<[Seq], LogError>) -> Void)

    /// Reads from `from` on, and then on as the log grows, in batches, on a thread of the log. Batches follow each
    /// other without a hole. It ends by `LogTail.cancel`, by `close`, or after it reported an error: `truncated` below
    /// the first seq, `ahead_of_log` beyond the last one + 1. The witnesses of a batch are known for some records from
    /// its ends on; those in its middle may be left out.
    func tail(_ partition: Int, from: Seq, to sink: any LogSink) -> any LogTail

    /// Records `from ... to` of a partition, at most about `bytes` of them, at least one where there is one. The batch
    /// says by `seqs` how far it got; it is empty beyond the end. Errors: `truncated` below the first seq.
    func read(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch

    /// True if announcements are written where the records are, by the same writer. One that is not written then says
    /// that no record would be.
    var keepsAnnouncements: Bool { get }
    /// Announces this node to the others; called about once a second.
    func announce(_ node: NodeAnnouncement) throws(LogError)
    /// What the nodes announced lately.
    func nodes() throws(LogError) -> [NodeAnnouncement]

    /// Ends all tails, waits until what was handed over is answered, and closes files or connections. What is appended
    /// later is answered with `log_unavailable`. Not from inside a sink or a `done`.
    func close()
}

extension EventLog {
    /// A log by itself takes every record that the format allows.
    public var recordBytesMax: Int { .max }

    /// Most logs have nothing to say.
    public var notice: String? { nil }

    /// Most logs have another place for announcements.
    public var keepsAnnouncements: Bool { false }

    /// Most logs cannot pass damage.
    public func readable(_ partition: Int, from: Seq) throws(LogError) -> LogBounds? { nil }
}
