internal import CRdkafka
internal import Glibc
internal import ReelBase
internal import ReelCore
internal import ReelLog
internal import Synchronization

/// Appends records to the brokers and waits for their delivery reports. `append` produces on the caller's thread, where
/// librdkafka only queues the record. Reports arrive on a thread of the appender.
///
/// A producer that has met a fatal error accepts nothing more. Its records in flight fail with `log_unavailable`, which
/// says that they may be in the log. Then another producer replaces it. An op that was sent again may therefore be in
/// the log twice, and in any order relative to later ops. That is safe because a fold takes each op once, in order.
///
/// A producer is also replaced if a batch is too large for the brokers, because an operator has lowered their limit. It
/// is replaced once all its records are answered or timed out. The next producer makes no larger batches. Larger
/// records are then refused before they reach the producer, so they cannot make other records fail.
final class Appender: @unchecked Sendable {
    private typealias Run = SendWindow<PendingAppend>.Run

    /// Records of one partition that are due for this producer.
    private typealias Due = (producer: Producer?, partition: Int, runs: [Run])

    /// The reported results of records of one partition.
    private struct Fates {
        var count = 0
        /// True if the brokers have accepted at least one of them.
        var isTaken = false
        var failure: LogError?

        mutating func add(_ result: Result<Seq, LogError>) {
            count += 1
            switch result {
            case .success: isTaken = true
            case .failure(let error): failure = failure ?? error
            }
        }
    }

    private struct State {
        /// The producer; nil: there is none, because the next one is being made.
        var producer: Producer?
        /// The error for the right that the last producer lacked; nil: it lacked none.
        var refusal: LogError?
        /// When records in flight fail because the appender is closed; `Int64.max`: it is open.
        var closeAtMs = Int64.max
        var isClosed: Bool { closeAtMs < .max }
        var records = 0
        var bytes = 0
        /// The send windows, by partition.
        var windows: [Int: SendWindow<PendingAppend>] = [:]
        /// The records that librdkafka refused, with the error.
        var refused: [(run: Run, error: LogError)] = []

        /// Runs a step of a partition's window, and returns the records that it makes due.
        mutating func due(
            _ partition: Int,
            _ step: (inout SendWindow<PendingAppend>) -> [Run]
        ) -> Due {
            (producer, partition, step(&windows[partition, default: SendWindow()]))
        }

        mutating func take(_ next: Producer) {
            producer = next
            for partition in windows.keys { windows[partition]?.renew() }
        }
    }

    private let topic: String
    let limit: BrokerLimit
    private let log: KafkaLogLine
    private let recordsMax: Int
    private let bytesMax: Int
    private let state: Mutex<State>
    private let thread: Mutex<LogThread?>
    private let counters: KafkaCounters
    /// The configuration and backoff of the next producer. Used only on the appender's thread.
    private var configuration: KafkaConfiguration
    private var backoff = ProducerBackoff()

    /// The interval at which an idle thread checks the time. Anything urgent wakes the thread.
    private static let pollMs: Int32 = 1_000
    private static let closingPollMs: Int32 = 100
    /// Timeouts for records in flight, in milliseconds, after which they fail. `outgrownMs` applies to a producer with
    /// too large batches. `closeMs` applies when the log is closed: publishers no longer wait then.
    static let outgrownMs: Int64 = 5_000
    static let closeMs: Int64 = 2_000

    init(
        topic: String,
        configuration: KafkaConfiguration,
        counters: KafkaCounters,
        limit: BrokerLimit,
        log: @escaping KafkaLogLine
    ) throws(LogError) {
        self.topic = topic
        self.configuration = configuration
        self.counters = counters
        self.limit = limit
        self.log = log
        let producer = try Producer(topic, configuration, log)
        recordsMax = producer.handle.number("queue.buffering.max.messages") ?? 0
        bytesMax = (producer.handle.number("queue.buffering.max.kbytes") ?? 0) << 10
        state = Mutex(State(producer: producer))
        thread = Mutex(nil)
        let thread = try LogThread("kafka-append") { self.run(producer) }
        self.thread.withLock { $0 = thread }
    }

    /// Appends records; see `EventLog.append`. From any thread; never blocks.
    func append(_ records: [LogAppend], to partition: Int, done: @escaping PendingAppend.Done) {
        var bytes = 0
        for record in records {
            let size = record.key.count + record.value.count
            let sizeMax = limit.recordBytesMax
            guard size <= sizeMax else {
                return done(.failure(LogError(.tooLarge, "found a record of \(size) bytes, at most \(sizeMax) fit")))
            }
            bytes += size
        }
        guard !records.isEmpty else { return done(.success([])) }
        let pending = PendingAppend(records, to: partition, byteCount: bytes, done: done)
        do throws(LogError) {
            handOver(try reserve(pending))
        } catch {
            done(.failure(error))
        }
    }

    /// Produces the records that are due, and those that become due meanwhile. From any thread.
    private func handOver(_ first: Due) {
        var due = first
        // Without a producer no record waits.
        while let producer = due.producer, !due.runs.isEmpty {
            for run in due.runs { handOver(run, to: producer) }
            due = state.withLock { $0.due(first.partition) { $0.handedOver() } }
        }
    }

    /// Produces the records of a run. The appender's thread handles those that librdkafka refuses.
    private func handOver(_ run: Run, to producer: Producer) {
        let append = run.append
        for index in run.records {
            let code = producer.produce(append.records[index], to: append.partition, opaque: append.opaque(index))
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
                let error = LogError(kafka: code, "hand a record to librdkafka", trouble: producer.handle.trouble)
                let rest = Run(append: append, records: index..<run.records.upperBound)
                state.withLock { $0.refused.append((rest, error)) }
                return producer.wake()
            }
        }
    }

    /// Reserves space for all records of an append, or throws.
    private func reserve(_ pending: PendingAppend) throws(LogError) -> Due {
        try state.withLock { state throws(LogError) in
            guard !state.isClosed else { throw .closed }
            guard state.producer != nil else {
                throw state.refusal ?? LogError(.logUnavailable, "another producer is being made")
            }
            guard state.records + pending.count <= recordsMax, state.bytes + pending.byteCount <= bytesMax else {
                throw LogError(
                    .overloaded,
                    "\(state.records) records of \(state.bytes) bytes wait for the brokers, at most \(recordsMax) of"
                        + " \(bytesMax) may"
                )
            }
            state.records += pending.count
            state.bytes += pending.byteCount
            // Released by `finish`.
            _ = Unmanaged.passRetained(pending)
            return state.due(pending.partition) {
                $0.take(pending, count: pending.count, nowMs: MonotonicClock.nowMs())
            }
        }
    }

    /// Closes the appender. Waits at most `closeMs` for records in flight.
    func close() {
        let producer = state.withLock { state in
            state.closeAtMs = min(state.closeAtMs, MonotonicClock.nowMs() + Self.closeMs)
            return state.producer
        }
        producer?.wake()
        let thread = thread.withLock { $0.take() }
        if let thread, !thread.isCurrent { thread.join() }
    }

    /// The records that wait for the brokers, and their bytes.
    var inFlight: (records: Int, bytes: Int) { state.withLock { ($0.records, $0.bytes) } }

    // MARK: The thread

    private func run(_ first: Producer) {
        var producer = first
        while true {
            serve(producer)
            if state.withLock({ $0.isClosed }) { break }
            backoff.failed(lacksRight: state.withLock { $0.refusal } != nil, hasDelivered: producer.hasDelivered)
            counters.rebuilds.add(1, ordering: .relaxed)
            guard let next = rebuild() else { break }
            producer = next
        }
        state.withLock { $0.producer = nil }
    }

    /// Handles reports until the producer is unusable and all its records are answered or given up.
    private func serve(_ producer: Producer) {
        var giveUpMs = Int64.max
        var waitMs = Self.pollMs
        while true {
            poll(producer, waitMs: waitMs)
            settleRefused()
            limit.askIfDue()
            let (isOver, isOutgrown) = (producer.isFatal, producer.isOutgrown)
            if isOver || isOutgrown { retire(producer) }
            let (left, isClosed, closeAtMs) = state.withLock { ($0.records, $0.isClosed, $0.closeAtMs) }
            if left == 0, isOver || isOutgrown || isClosed { return }
            waitMs = isOver || isOutgrown || isClosed ? Self.closingPollMs : Self.pollMs
            // A partition without a leader must not delay the others.
            if isOver {
                giveUpMs = 0
            } else if isOutgrown {
                giveUpMs = min(giveUpMs, MonotonicClock.nowMs() + Self.outgrownMs)
            }
            // Purged again in each round: a thread that was producing during the last purge may have added a record
            // after it.
            if MonotonicClock.nowMs() >= min(giveUpMs, closeAtMs) {
                retire(producer)
                producer.purge()
            }
        }
    }

    /// Handles one event of the producer.
    private func poll(_ producer: Producer, waitMs: Int32) {
        guard let event = rd_kafka_queue_poll(producer.queue, waitMs) else { return }
        var finished: [PendingAppend] = []
        var reported: [Int: Fates] = [:]
        switch rd_kafka_event_type(event) {
        case RD_KAFKA_EVENT_DR:
            while let message = rd_kafka_event_message_next(event) {
                guard let opaque = message.pointee._private else { continue }
                let append = PendingAppend.of(opaque)
                switch message.pointee.err {
                case RD_KAFKA_RESP_ERR_NO_ERROR: producer.hasDelivered = true
                case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
                    producer.isOutgrown = true
                    limit.refused(recordBytes: message.pointee.key_len + message.pointee.len)
                default: break
                }
                let result = Self.result(of: message, producer)
                reported[append.partition, default: Fates()].add(result)
                if append.report(opaque, result) { finished.append(append) }
            }
        case RD_KAFKA_EVENT_ERROR:
            let reason = rd_kafka_event_error_string(event).map { String(cString: $0) } ?? ""
            producer.handle.heard(rd_kafka_event_error(event), reason)
            if rd_kafka_event_error_is_fatal(event) != 0 {
                producer.isFatal = true
                let text = "the producer met a fatal error and is replaced: \(reason)"
                log(2, "REEL", producer.refusal?.message ?? text)
            }
        default: break
        }
        // Destroying the event frees the space of its records in librdkafka's queue.
        rd_kafka_event_destroy(event)
        // Retired before the answers: a caller that sends a record again after its answer must not use this producer.
        if producer.isOutgrown { retire(producer) }
        for (partition, fates) in reported { settled(fates, of: partition) }
        for append in finished { finish(append) }
    }

    /// Updates the window of a partition after results of its records. Other records may now be due.
    private func settled(_ fates: Fates, of partition: Int) {
        let (due, hopeless) = state.withLock { state in
            let hopeless = fates.isTaken ? [] : state.windows[partition]?.giveUpUnlessKnown() ?? []
            return (
                state.due(partition) { $0.settled(fates.count, isTaken: fates.isTaken, nowMs: MonotonicClock.nowMs()) },
                hopeless
            )
        }
        if let failure = fates.failure { giveUp(hopeless, Self.behind(failure)) }
        handOver(due)
    }

    /// Removes the producer, so that no thread uses it any more. Records that still wait were not sent, and fail.
    private func retire(_ producer: Producer) {
        let runs = state.withLock { state in
            state.producer = nil
            state.refusal = producer.refusal
            return state.windows.keys.flatMap { state.windows[$0]?.giveUp() ?? [] }
        }
        let error = LogError(.logUnavailable, "the producer ended before it was handed the record")
        giveUp(runs, producer.refusal ?? error)
    }

    /// Returns the error for records that wait after a producer's first record, which failed.
    private static func behind(_ failure: LogError) -> LogError {
        if failure.code == .forbidden { return failure }
        return LogError(.logUnavailable, "not sent, for the first record of the producer failed: \(failure.message)")
    }

    private func giveUp(_ runs: [Run], _ error: LogError) {
        for run in runs where run.append.giveUp(run.records.count, error) { finish(run.append) }
    }

    private static func result(
        of message: UnsafePointer<rd_kafka_message_t>,
        _ producer: Producer
    ) -> Result<Seq, LogError> {
        switch message.pointee.err {
        case RD_KAFKA_RESP_ERR_NO_ERROR: .success(message.pointee.offset < 0 ? .none : message.pointee.offset)
        // The record is in the log at an unknown seq.
        case RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER: .success(.none)
        case let code:
            .failure(
                producer.refusal ?? LogError(kafka: code, "append to the log", trouble: producer.handle.trouble)
            )
        }
    }

    private func settleRefused() {
        let refused = state.withLock { state in
            defer { state.refused = [] }
            return state.refused
        }
        for (run, error) in refused {
            giveUp([run], error)
            settled(Fates(count: run.records.count, failure: error), of: run.append.partition)
        }
    }

    private func finish(_ append: PendingAppend) {
        state.withLock { state in
            state.records -= append.count
            state.bytes -= append.byteCount
        }
        append.answer()
        Unmanaged.passUnretained(append).release()
    }

    /// Makes another producer; nil once the log is closed.
    private func rebuild() -> Producer? {
        while !state.withLock({ $0.isClosed }) {
            limit.askIfDue()
            guard let batchBytes = limit.batchBytes, backoff.begins(nowMs: MonotonicClock.nowMs()) else {
                usleep(20_000)
                continue
            }
            configuration.batchBytes = batchBytes
            do throws(LogError) {
                let producer = try Producer(topic, configuration, log)
                state.withLock { $0.take(producer) }
                return producer
            } catch {
                log(3, "REEL", "no new producer: \(error.message)")
            }
        }
        return nil
    }
}
