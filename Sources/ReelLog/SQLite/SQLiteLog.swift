internal import Glibc
public import ReelCore
internal import Synchronization

/// The log of one box: an SQLite file that several processes share. An append is answered once it is on the disk.
///
/// Commits and checkpoints of all processes take turns by a lock on `PATH.lock`, which is also the bell that wakes the
/// readers of other processes. Two threads a log: one writes, and hands a few records to the tails by itself; one runs
/// the tails for all else. Both sleep while nothing happens.
public final class SQLiteLog: EventLog {
    /// Random, given when the file was made.
    public let epoch: Epoch
    /// P, given when the file was made.
    public let partitions: Int
    private let writer: LogWriter
    private let reader: LogReader
    private let rows: Mutex<RowReader?>

    /// The largest record, key and value together; a contract's record is far smaller.
    private static let recordBytesMax = 16 << 20
    /// 8 MiB: long enough that checkpoints cost little, short enough that they do not take long.
    public static let checkpointFramesDefault = 1024

    /// Opens the file's current log, or makes it with `partitions` (nil: 4). Another number of partitions than it was
    /// made with is an error. `checkpointFrames` is the length of the WAL, in pages of 8 KiB, at which it is copied
    /// back. `report` is told of long waits for the file's lock.
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

    /// That the file is a copy, or older than it was, until `reel epoch new` or `reel log accept` settles that.
    public var notice: String? { reader.doubt?.notice }

    /// The ends of a partition.
    public func bounds(_ partition: Int) throws(LogError) -> LogBounds {
        try withRows { rows throws(LogError) in try rows.bounds(partition) }
    }

    /// Hands records over; see `EventLog.append`.
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

    /// Reads on as the log grows; see `EventLog.tail`.
    public func tail(_ partition: Int, from: Seq, to sink: any LogSink) -> any LogTail {
        let tail = TailHandle(partition: partition, from: from, sink: sink)
        reader.start(tail)
        return tail
    }

    /// Reads a range; see `EventLog.read`.
    public func read(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch {
        try withRows { rows throws(LogError) in try rows.read(partition, from: from, to: to, bytes: bytes) }
    }

    /// What can be read although rows are damaged; see `EventLog.readable`.
    public func readable(_ partition: Int, from: Seq) throws(LogError) -> LogBounds? {
        try withRows { rows throws(LogError) in try rows.readable(partition, from: from) }
    }

    /// The file has both.
    public var keepsAnnouncements: Bool { true }

    /// Announces a node to the others, and waits until it is written.
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

    /// What the nodes announced lately.
    public func nodes() throws(LogError) -> [NodeAnnouncement] {
        try withRows { rows throws(LogError) in try rows.nodes(since: NodeAnnouncement.oldestMs()) }
    }

    /// Ends tails, commits and answers what was handed over, and closes the file. The last user of the file copies the
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
