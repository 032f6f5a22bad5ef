internal import Glibc
internal import ReelBase
internal import ReelCore
internal import ReelLog
internal import Synchronization

/// Reads ranges and ends of one topic's partitions. A hole counts only after a second read.
final class PartitionReading: RevalidationSource {
    private let topic: String
    private let pool: ReaderPool
    private let counters: KafkaCounters
    private let patience: Int64

    private let silent = Mutex(SilentPartitions())

    /// How long the brokers are asked again after they have denied a topic or partition, in milliseconds. A broker that
    /// has just started may not know all topics, and not all brokers know a new topic at once.
    private static let doubtMs: Int64 = 3_000
    private static let pauseMs: Int64 = 50

    init(
        topic: String,
        configuration: KafkaConfiguration,
        counters: KafkaCounters,
        log: @escaping KafkaLogLine
    ) {
        self.topic = topic
        self.counters = counters
        patience = Int64(configuration.patience)
        pool = ReaderPool { () throws(LogError) in
            try RangeReader(topic: topic, configuration: configuration, log: log)
        }
    }

    /// Returns the range from the first seq kept to the next seq.
    func ends(_ partition: Int) throws(LogError) -> Range<Seq> {
        try unlessSilent(partition) { waitMs throws(KafkaFailure) in try askEnds(partition, waitMs: waitMs) }
    }

    /// Returns records from `from` to `to`; see `EventLog.read`.
    func read(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch {
        try unlessSilent(partition) { waitMs throws(KafkaFailure) in
            try ask(partition, from: from, to: to, bytes: bytes, waitMs: waitMs)
        }
    }

    private func unlessSilent<R>(
        _ partition: Int,
        _ question: (_ waitMs: Int64) throws(KafkaFailure) -> R
    ) throws(LogError) -> R {
        guard let waitMs = silent.withLock({ $0.begin(partition, nowMs: MonotonicClock.nowMs()) }) else {
            throw LogError(.logUnavailable, "partition \(partition) has not answered for long, and is being asked")
        }
        do throws(KafkaFailure) {
            let answer = try question(waitMs * patience)
            silent.withLock { $0.end(partition, answered: true, nowMs: MonotonicClock.nowMs()) }
            return answer
        } catch {
            silent.withLock { $0.end(partition, answered: error.kind != .away, nowMs: MonotonicClock.nowMs()) }
            throw error.error
        }
    }

    /// Does the same as `ends`, and throws the kind of failure.
    func askEnds(_ partition: Int, waitMs: Int64) throws(KafkaFailure) -> Range<Seq> {
        try patiently(waitMs) { reader, untilMs throws(KafkaFailure) in try reader.ends(partition, untilMs: untilMs) }
    }

    /// Does the same as `read`, and throws the kind of failure.
    func ask(
        _ partition: Int,
        from: Seq,
        to: Seq,
        bytes: Int,
        waitMs: Int64
    ) throws(KafkaFailure) -> RecordBatch {
        guard from >= 0 else { throw try below(from, partition, waitMs) }
        guard from <= to, from < largestInteger else { return RecordBatch(partition: partition, empty: from..<from) }
        guard let once = try readOnce(partition, from: from, to: min(to, largestInteger), bytes: bytes, waitMs) else {
            return RecordBatch(partition: partition, empty: from..<from)
        }
        let entries = once.messages.entries
        let seqs = from..<once.end
        guard entries.count == seqs.count else { return try readAgain(partition, seqs, once.messages, waitMs) }
        return RecordBatch(partition: partition, seqs: seqs, entries: entries) { [messages = once.messages] in
            withExtendedLifetime(messages) {}
        }
    }

    /// Reads a range with missing seqs again, through a new fetch from its first seq. Only a seq that is missing both
    /// times is a hole.
    private func readAgain(
        _ partition: Int,
        _ seqs: Range<Seq>,
        _ first: KafkaMessages,
        _ waitMs: Int64
    ) throws(KafkaFailure) -> RecordBatch {
        counters.rereads.add(1, ordering: .relaxed)
        guard let again = try readOnce(partition, from: seqs.lowerBound, to: seqs.upperBound - 1, bytes: .max, waitMs),
            again.end == seqs.upperBound
        else {
            let message = "the log of partition \(partition) ended before seq \(seqs.upperBound - 1), which was read"
            throw KafkaFailure(.away, LogError(.logUnavailable, message))
        }
        var entries = first.entries
        let known = Set(entries.map(\.seq))
        entries += again.messages.entries.filter { !known.contains($0.seq) }
        entries.sort { $0.seq < $1.seq }
        // A seq that was trimmed between the reads is not a hole.
        if entries.first?.seq != seqs.lowerBound,
            try askEnds(partition, waitMs: waitMs).lowerBound > seqs.lowerBound
        {
            throw try below(seqs.lowerBound, partition, waitMs)
        }
        counters.holes.add(seqs.count - entries.count, ordering: .relaxed)
        return RecordBatch(partition: partition, seqs: seqs, entries: entries) { [second = again.messages] in
            withExtendedLifetime((first, second)) {}
        }
    }

    /// Returns nil beyond the end of the log.
    private func readOnce(
        _ partition: Int,
        from: Seq,
        to: Seq,
        bytes: Int,
        _ waitMs: Int64
    ) throws(KafkaFailure) -> RangeReader.Reading? {
        do throws(KafkaFailure) {
            return try patiently(waitMs) { reader, untilMs throws(KafkaFailure) in
                let reading = try reader.read(partition, from: from, to: to, bytes: bytes, untilMs: untilMs)
                if reading.end == from { try reader.expectEnd(of: partition, at: from, untilMs: untilMs) }
                return reading
            }
        } catch  where error.kind == .outOfRange {
            let ends = try askEnds(partition, waitMs: waitMs)
            guard from >= ends.lowerBound else { throw try below(from, partition, waitMs) }
            guard from >= ends.upperBound else { throw KafkaFailure(.away, error.error) }
            return nil
        }
    }

    private func below(_ seq: Seq, _ partition: Int, _ waitMs: Int64) throws(KafkaFailure) -> KafkaFailure {
        KafkaFailure(.told, .belowTheFirst(seq, first: try askEnds(partition, waitMs: waitMs).lowerBound))
    }

    /// Asks until there is an answer, a final failure, or a timeout.
    private func patiently<R>(
        _ waitMs: Int64,
        _ question: (RangeReader, _ untilMs: Int64) throws(KafkaFailure) -> R
    ) throws(KafkaFailure) -> R {
        var untilMs = MonotonicClock.nowMs() + waitMs
        var lastingUntilMs: Int64?
        while true {
            do throws(KafkaFailure) {
                return try pool.withReader { reader throws(KafkaFailure) in try question(reader, untilMs) }
            } catch {
                var endMs = untilMs
                switch error.kind {
                case .outOfRange, .told: throw error
                case .lasting:
                    endMs = lastingUntilMs ?? MonotonicClock.nowMs() + Self.doubtMs
                    lastingUntilMs = endMs
                    // Questions before that moment get their full time.
                    untilMs = max(untilMs, endMs + waitMs)
                case .away: break
                }
                guard MonotonicClock.nowMs() + Self.pauseMs < endMs else { throw error }
                usleep(UInt32(Self.pauseMs) * 1_000)
            }
        }
    }

    func close() {
        pool.close()
    }
}
