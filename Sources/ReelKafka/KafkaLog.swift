public import ReelCore
public import ReelLog
internal import Synchronization

/// The log of a cluster: one topic. Its partitions are the log's partitions, and its offsets are the seqs.
///
/// An idempotent producer appends records (`Append`). Separate handles follow tails (`Tail`), and a pool of handles
/// reads ranges (`Read`). The log uses no consumer group, no transaction, and no stored position.
public final class KafkaLog: EventLog {
    /// The epoch of the log. It is part of the topic's name, so that no name is used for two logs.
    public let epoch: Epoch
    /// P, the number of partitions. It is fixed when the topic is created.
    public let partitions: Int
    private let topic: String
    private let configuration: KafkaConfiguration
    private let log: KafkaLogLine
    private let directory: any NodeDirectory
    private let counters = KafkaCounters()
    private let appender: Appender
    private let reading: PartitionReading
    private let doubts: TailRevalidations
    private let tails = Mutex(Tails())
    private let ended = LastReadRecords()

    private struct Tails {
        var readers: [TailReader] = []
        var isClosed = false
    }

    /// Opens the log of an epoch. This does not query the brokers, so it also succeeds while they cannot be reached.
    ///
    /// - Parameters:
    ///   - epoch: The epoch of the log.
    ///   - partitions: The number of partitions of the log.
    ///   - topic: The name of the topic.
    ///   - configuration: The brokers and properties.
    ///   - directory: The announcements of the nodes.
    ///   - messageBytesMax: Asks the brokers for the largest batch that the topic accepts; returns nil if they do not
    ///     tell. Called after they have refused a batch as too large. May block.
    ///   - log: Called with librdkafka's log lines.
    /// - Throws: `bad_request` if librdkafka refuses a property. Another `LogError` if the process has no thread left.
    public init(
        epoch: Epoch,
        partitions: Int,
        topic: String,
        configuration: KafkaConfiguration,
        directory: any NodeDirectory,
        messageBytesMax: @escaping @Sendable () -> Int? = { nil },
        log: @escaping KafkaLogLine
    ) throws(LogError) {
        self.epoch = epoch
        self.partitions = partitions
        self.topic = topic
        self.configuration = configuration
        self.directory = directory
        self.log = log
        reading = PartitionReading(topic: topic, configuration: configuration, counters: counters, log: log)
        doubts = TailRevalidations(asking: reading)
        let usual = BatchLimit(batchBytes: configuration.batchBytes)
        let limit = BrokerLimit(usual, of: topic, log: log, ask: messageBytesMax)
        appender = try Appender(
            topic: topic,
            configuration: configuration,
            counters: counters,
            limit: limit,
            log: log
        )
    }

    deinit {
        close()
    }

    /// The largest record that the log accepts, in bytes. It is the limit of the format, until the brokers refuse a
    /// batch as too large. Then it is the brokers' limit, queried once a minute.
    public var recordBytesMax: Int { appender.limit.recordBytesMax }

    /// The counters of the log since it was opened.
    public var counts: KafkaLogCounts {
        let inFlight = appender.inFlight
        return KafkaLogCounts(
            holes: counters.holes.load(ordering: .relaxed),
            rereads: counters.rereads.load(ordering: .relaxed),
            doubts: counters.doubts.load(ordering: .relaxed),
            rebuilds: counters.rebuilds.load(ordering: .relaxed),
            recordsInFlight: inFlight.records,
            bytesInFlight: inFlight.bytes
        )
    }

    /// Appends records; see `EventLog.append`. A seq is `Seq.none` if the brokers do not report it. The error is
    /// `overloaded` if more records would wait than `queue.buffering.max.messages` and `queue.buffering.max.kbytes`
    /// allow.
    public func append(
        _ records: [LogAppend],
        to partition: Int,
        done: @escaping @Sendable (Result<[Seq], LogError>) -> Void
    ) {
        guard (0..<partitions).contains(partition) else {
            return done(.failure(.noPartition(partition, of: partitions)))
        }
        appender.append(records, to: partition, done: done)
    }

    /// Reads a partition as the log grows; see `EventLog.tail`.
    public func tail(_ partition: Int, from: Seq, to sink: any LogSink) -> any LogTail {
        let tail = TailHandle(partition: partition, from: from, sink: sink)
        do throws(LogError) {
            guard (0..<partitions).contains(partition) else { throw .noPartition(partition, of: partitions) }
            try begin(tail)
        } catch {
            tail.fail(error)
        }
        return tail
    }

    /// Begins a tail. A handle reads each partition for one tail only, so a further handle is created if all others
    /// already read the partition.
    private func begin(_ tail: TailHandle) throws(LogError) {
        try tails.withLock { tails throws(LogError) in
            guard !tails.isClosed else { throw .closed }
            if tails.readers.contains(where: { $0.begin(tail) }) { return }
            let reader = try TailReader(
                topic: topic,
                configuration: configuration,
                doubts: doubts,
                counters: counters,
                ended: ended,
                log: log
            )
            tails.readers.append(reader)
            _ = reader.begin(tail)
        }
    }

    /// Reads a range; see `EventLog.read`.
    public func read(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch {
        guard (0..<partitions).contains(partition) else { throw .noPartition(partition, of: partitions) }
        return try reading.read(partition, from: from, to: to, bytes: bytes)
    }

    /// Returns the first and the last seq of a partition, as its leader reports them.
    public func bounds(_ partition: Int) throws(LogError) -> LogBounds {
        guard (0..<partitions).contains(partition) else { throw .noPartition(partition, of: partitions) }
        let ends = try reading.ends(partition)
        return ends.upperBound == 0 ? .empty : LogBounds(first: ends.lowerBound, last: ends.upperBound - 1)
    }

    /// Announces a node to the others.
    public func announce(_ node: NodeAnnouncement) throws(LogError) {
        try directory.announce(node)
    }

    /// Returns the recent announcements of the nodes.
    public func nodes() throws(LogError) -> [NodeAnnouncement] {
        try directory.nodes()
    }

    /// Ends the tails and answers pending appends. Those that the brokers do not answer within 2 s fail with
    /// `log_unavailable`.
    public func close() {
        let readers = tails.withLock { tails in
            tails.isClosed = true
            defer { tails.readers = [] }
            return tails.readers
        }
        appender.close()
        for reader in readers { reader.close() }
        reading.close()
    }
}
