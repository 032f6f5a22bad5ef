public import ReelCore

/// A log: P partitions of records. Each partition is append-only and totally ordered; the offset of a record is its
/// seq.
///
/// Every implementation passes one conformance suite (`EventLogConformance` in the tests). Only `append` never blocks.
/// Do not make any other call on an event loop.
public protocol EventLog: AnyObject, Sendable {
    /// The epoch of this log, which identifies it.
    var epoch: Epoch { get }
    /// P, the number of partitions. It is fixed when the log is created.
    var partitions: Int { get }

    /// The largest record that the log accepts, in bytes of key and value together. The value may decrease: brokers can
    /// be configured to accept less.
    var recordBytesMax: Int { get }

    /// A message for the operator about the log's storage and what to do, such as that its file is a copy; nil: none.
    /// Never blocks.
    var notice: String? { get }

    /// Returns the first and the last seq that can be read; see `LogBounds` for a partition without records. Queries
    /// the log itself.
    func bounds(_ partition: Int) throws(LogError) -> LogBounds

    /// Returns what can be read after a read of `from` has failed with `damaged`. The call may read all later records.
    ///
    /// - Returns: `first` is the first seq at or after `from` that can be read, or the last seq + 1 if there is none.
    ///   `last` is the last seq of the partition. Nil: this log cannot skip damage.
    func readable(_ partition: Int, from: Seq) throws(LogError) -> LogBounds?

    /// Appends records, in order per partition. Never blocks.
    ///
    /// - Parameters:
    ///   - records: The records.
    ///   - partition: The partition's number.
    ///   - done: Called exactly once, with the seqs of the records in the given order, or with one error for all. After
    ///     an error the records may still be in the log. The call comes on a thread of the log. Errors that the log
    ///     detects at once (no such partition, closed) are reported inside `append`, on the caller's thread.
    func append(_ records: [LogAppend], to partition: Int, done: @escaping @Sendable (Result<[Seq], LogError>) -> Void)

    /// Reads a partition from `from` on and continues as the log grows. Batches arrive on a thread of the log and
    /// follow each other without a gap.
    ///
    /// The tail ends with `LogTail.cancel`, with `close`, or after it has reported an error. The error is `truncated`
    /// if `from` is below the first seq, and `ahead_of_log` if it is above the last seq + 1. Witnesses are present for
    /// some records at both ends of a batch; records in the middle may lack them.
    ///
    /// - Parameters:
    ///   - partition: The partition's number.
    ///   - from: The first seq.
    ///   - sink: The receiver of the batches and of the error.
    /// - Returns: The handle that cancels the tail.
    func tail(_ partition: Int, from: Seq, to sink: any LogSink) -> any LogTail

    /// Returns the records of a partition from `from` to `to`. The batch's `seqs` say how far it reaches.
    ///
    /// - Parameters:
    ///   - partition: The partition's number.
    ///   - from: The first seq.
    ///   - to: The last seq.
    ///   - bytes: The approximate limit of the batch. The batch has at least one record if there is one.
    /// - Returns: The batch; it is empty beyond the end.
    /// - Throws: `truncated` if `from` is below the first seq.
    func read(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch

    /// True if one writer writes announcements and records to the same storage. If it then cannot write an
    /// announcement, it could not write a record either.
    var keepsAnnouncements: Bool { get }
    /// Announces this node to the other nodes. Called about once a second.
    func announce(_ node: NodeAnnouncement) throws(LogError)
    /// Returns the recent announcements of the nodes.
    func nodes() throws(LogError) -> [NodeAnnouncement]

    /// Ends all tails, waits until all pending appends are answered, and closes files or connections. Later appends
    /// fail with `log_unavailable`. Do not call it from inside a sink or a `done`.
    func close()
}

extension EventLog {
    /// No limit: by default a log accepts every record that the format allows.
    public var recordBytesMax: Int { .max }

    /// Nil: most logs have nothing to report.
    public var notice: String? { nil }

    /// False: most logs store announcements elsewhere.
    public var keepsAnnouncements: Bool { false }

    /// Returns nil: most logs cannot skip damage.
    public func readable(_ partition: Int, from: Seq) throws(LogError) -> LogBounds? { nil }
}
