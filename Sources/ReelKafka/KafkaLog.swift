public import ReelCore
public import ReelLog
internal import Synchronization

/// The log of a cluster: one topic, whose partitions are the log's and whose offsets are the seqs.
///
/// Records are appended by an idempotent producer (`Append`), tails are followed by handles of their own (`Tail`), and
/// ranges are read by a pool of others (`Read`). No group, no transaction, no stored position.
public final class KafkaLog: EventLog {
    /// Part of the topic's name, so that no name is used for two logs.
    public let epoch: Epoch
    /// P, fixed when the topic is made.
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

    /// The log of this epoch in `topic`, which has `partitions` partitions. Nothing is asked of the brokers here, and a
    /// log whose brokers are away opens as well. `messageBytesMax` asks the brokers for the largest batch that the
    /// topic takes, nil where they do not tell; it is called when they refuse one as too large, and may block. `log`
    /// takes librdkafka's own lines.
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
        appender = try Appender(
            topic: topic,
            configuration: configuration,
            counters: counters,
            messageBytesMax: messageBytesMax,
            log: log
        )
    }

    deinit {
        close()
    }

    /// What the format allows, until the brokers refuse a batch as too large: then what they say they take, asked once
    /// a minute.
    public var recordBytesMax: Int { appender.recordBytesMax }

    /// What the log has met since it was opened.
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

    /// Hands records over; see `EventLog.append`. `overloaded` where more would wait for the brokers than
    /// `queue.buffering.max.messages` and `queue.buffering.max.kbytes` allow. A seq is `Seq.none` where the brokers do
    /// not say it.
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

    /// Reads on as the log grows; see `EventLog.tail`.
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

    /// A handle reads a partition for one tail only: where all are taken, another handle is made.
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

    /// The ends of a partition, as its leader says.
    public func bounds(_ partition: Int) throws(LogError) -> LogBounds {
        guard (0..<partitions).contains(partition) else { throw .noPartition(partition, of: partitions) }
        let ends = try reading.ends(partition)
        return ends.upperBound == 0 ? .empty : LogBounds(first: ends.lowerBound, last: ends.upperBound - 1)
    }

    /// Announces a node to the others.
    public func announce(_ node: NodeAnnouncement) throws(LogError) {
        try directory.announce(node)
    }

    /// What the nodes announced lately.
    public func nodes() throws(LogError) -> [NodeAnnouncement] {
        try directory.nodes()
    }

    /// Ends tails and answers what was handed over, with `log_unavailable` what the brokers do not answer within 2 s.
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
