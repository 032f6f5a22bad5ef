internal import Glibc
public import ReelCore
internal import Synchronization

/// The log of a single machine: an SQLite file that several processes share. An append is answered once it is on the
/// disk.
///
/// Commits and checkpoints of all processes are serialised by a lock on `PATH.lock`. That file also wakes the readers
/// of other processes. A log has two threads. The writer's thread commits, and delivers small groups to the tails
/// directly. The reader's thread runs the tails for everything else. Both sleep while nothing happens.
public final class SQLiteLog: EventLog {
    /// The epoch of the log: random, chosen when the log was created.
    public let epoch: Epoch
    /// P, the number of partitions. It is fixed when the log is created.
    public let partitions: Int
    private let writer: LogWriter
    private let reader: LogReader
    private let rows: Mutex<RowReader?>

    /// The largest record in bytes, key and value together. The records of the data format are far smaller.
    private static let recordBytesMax = 16 << 20
    /// The default WAL length in pages, 8 MiB: long enough that checkpoints cost little, short enough that each is
    /// quick.
    public static let checkpointFramesDefault = 1024

    /// Opens the file's current log, or creates it.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - partitions: The expected number of partitions; nil: any, and a new log has 4.
    ///   - checkpointFrames: The length of the WAL, in pages of 8 KiB, at which it is copied back into the file.
    ///   - report: Called with long waits for the file's lock.
    /// - Throws: `bad_request` if the log has another number of partitions.
    public convenience init(
        path: String,
        partitions: Int? = nil,
        checkpointFrames: Int = SQLiteLog.checkpointFramesDefault,
        report: @escaping LockWaitReport = { _ in }
    ) throws(LogError) {
        let file = try LogFile(path: path, partitions: partitions, walFrames: checkpointFrames, report: report)
        try self.init(file, checkpointFrames: checkpointFrames)
    }

    /// Opens a log of a file.
    init(_ file: LogFile, checkpointFrames: Int = SQLiteLog.checkpointFramesDefault) throws(LogError) {
        epoch = file.epoch
        self.partitions = file.partitions
        rows = Mutex(try RowReader(file))
        let reader = try LogReader(file, watch: try? file.lock.listen())
        self.reader = reader
        do throws(LogError) {
            writer = try LogWriter(file, checkpointFrames: checkpointFrames) { batches in
                file.lock.ring()
                reader.take(batches)
            }
        } catch {
            reader.close()
            throw error
        }
    }

    deinit {
        close()
    }

    /// The warning that the file is a copy, or older than it was, until `reel epoch new` or `reel log accept` settles
    /// that.
    public var notice: String? { reader.doubt?.notice }

    /// Returns the first and the last seq of a partition.
    public func bounds(_ partition: Int) throws(LogError) -> LogBounds {
        try withRows { rows throws(LogError) in try rows.bounds(partition) }
    }

    /// Appends records; see `EventLog.append`.
    public func append(
        _ records: [LogAppend],
        to partition: Int,
        done: @escaping @Sendable (Result<[Seq], LogError>) -> Void
    ) {
        guard (0..<partitions).contains(partition) else {
            return done(.failure(.noPartition(partition, of: partitions)))
        }
        for record in records where record.key.count + record.value.count > Self.recordBytesMax {
            return done(
                .failure(
                    LogError(
                        .tooLarge,
                        "found a record of \(record.key.count + record.value.count) bytes, at most"
                            + " \(Self.recordBytesMax) fit"
                    )
                )
            )
        }
        writer.hand(over: .append(partition: partition, records: records, done: done))
    }

    /// Reads a partition as the log grows; see `EventLog.tail`.
    public func tail(_ partition: Int, from: Seq, to sink: any LogSink) -> any LogTail {
        let tail = TailHandle(partition: partition, from: from, sink: sink)
        reader.start(tail)
        return tail
    }

    /// Reads a range; see `EventLog.read`.
    public func read(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch {
        try withRows { rows throws(LogError) in try rows.read(partition, from: from, to: to, bytes: bytes) }
    }

    /// Returns what can be read although rows are damaged; see `EventLog.readable`.
    public func readable(_ partition: Int, from: Seq) throws(LogError) -> LogBounds? {
        try withRows { rows throws(LogError) in try rows.readable(partition, from: from) }
    }

    /// True: the file holds both records and announcements.
    public var keepsAnnouncements: Bool { true }

    /// Announces a node to the others, and waits until the announcement is written.
    public func announce(_ node: NodeAnnouncement) throws(LogError) {
        let answer = Mutex<Result<Void, LogError>?>(nil)
        let bell = try WakeUp()
        writer.hand(
            over: .announce(node) { result in
                answer.withLock { $0 = result }
                bell.ring()
            }
        )
        while true {
            bell.wait()
            if let result = answer.withLock({ $0 }) { return try result.get() }
        }
    }

    /// Returns the recent announcements of the nodes.
    public func nodes() throws(LogError) -> [NodeAnnouncement] {
        try withRows { rows throws(LogError) in try rows.nodes(since: NodeAnnouncement.oldestMs()) }
    }

    /// Ends the tails, commits and answers pending appends, and closes the file. The last user of the file copies the
    /// WAL into it.
    public func close() {
        writer.close()
        reader.close()
        rows.withLock { $0 = nil }
    }

    private func withRows<R: Sendable>(_ body: (RowReader) throws(LogError) -> R) throws(LogError) -> R {
        try rows.withLock { rows throws(LogError) in
            guard let rows else { throw .closed }
            return try body(rows)
        }
    }
}
