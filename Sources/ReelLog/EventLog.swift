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

    /// The first seq that can be read and the last one; −1 and −1 for an empty partition. Asks the log itself.
    func bounds(_ partition: Int) throws(LogError) -> LogBounds

    /// Hands records over, in order per partition. Never blocks. `done` is called once, on a thread of the log, with a
    /// seq or an error for each record, in the order given. An error does not say that the record is not in the log.
    func append(_ records: [LogAppend], to partition: Int, done: @escaping @Sendable (Result<[Seq], LogError>) -> Void)

    /// Reads from `from` on, and then on as the log grows, in batches, on a thread of the log. Batches follow each
    /// other without a hole. It ends by `LogTail.cancel` or after it reported an error.
    func tail(_ partition: Int, from: Seq, to sink: any LogSink) -> any LogTail

    /// Records `from ... to` of a partition, at most about `bytes` of them, at least one where there is one.
    func read(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch

    /// Announces this node to the others; called about once a second.
    func announce(_ node: NodeAnnouncement) throws(LogError)
    /// What the nodes announced lately.
    func nodes() throws(LogError) -> [NodeAnnouncement]

    /// Ends all tails, waits for what is in flight, and closes the files or connections.
    func close()
}

/// The ends of a partition; `first` is −1 and `last` is −1 where it is empty.
public struct LogBounds: Equatable, Sendable {
    public var first: Seq
    public var last: Seq

    public init(first: Seq, last: Seq) {
        self.first = first
        self.last = last
    }
}

/// What a gateway had read last of the partition when it handed a record over: header `p`.
public struct Witness: Equatable, Sendable {
    public var seq: Seq
    /// FNV-1a 64 of key, a zero byte, value.
    public var hash: UInt64

    public init(seq: Seq, hash: UInt64) {
        self.seq = seq
        self.hash = hash
    }
}

/// A record on its way into the log.
public struct LogAppend: Sendable {
    public var key: [UInt8]
    public var value: [UInt8]
    public var witness: Witness?

    public init(key: [UInt8], value: [UInt8], witness: Witness? = nil) {
        self.key = key
        self.value = value
        self.witness = witness
    }
}

/// Where a tail delivers. Called on one thread of the log, one call at a time.
public protocol LogSink: AnyObject, Sendable {
    /// The next records. The batch may be kept and shared between threads.
    func received(_ batch: RecordBatch)
    /// The tail has ended: truncated, recreated, rolled back, unreadable.
    func failed(_ error: LogError)
}

/// A running tail.
public protocol LogTail: AnyObject, Sendable {
    /// Ends it. No batch arrives after this has returned, unless it is called from inside the sink.
    func cancel()
}
