internal import Glibc
internal import ReelCore
internal import ReelLog
internal import Synchronization

/// Reads ranges and ends of one topic's partitions, and believes in no hole that it has seen only once.
final class PartitionReading: RevalidationSource {
    private let topic: String
    private let pool: ReaderPool
    private let counters: KafkaCounters
    private let patience: Int64

    private let silent = Mutex(SilentPartitions())

    /// So long it asks again whether a topic or partition is really not there, once that was said: a broker that has
    /// just started, or a topic that was just made, is not known to all at once.
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

    /// The first seq kept and the one that will be given next.
    func ends(_ partition: Int) throws(LogError) -> Range<Seq> {
        try unlessSilent(partition) { waitMs throws(KafkaFailure) in try askEnds(partition, waitMs: waitMs) }
    }

    /// Records `from ... to`; see `EventLog.read`.
    func read(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch {
        try unlessSilent(partition) { waitMs throws(KafkaFailure) in
            try ask(partition, from: from, to: to, bytes: bytes, waitMs: waitMs)
        }
    }

    private func unlessSilent<R>(
        _ partition: Int,
        _ question: (_ waitMs: Int64) throws(KafkaFailure) -> R
    ) throws(LogError) -> R {
        guard let waitMs = silent.withLock({ $0.begin(partition, nowMs: nowMs()) }) else {
            throw LogError(.logUnavailable, "partition \(partition) has not answered for long, and is being asked")
        }
        do throws(KafkaFailure) {
            let answer = try question(waitMs * patience)
            silent.withLock { $0.end(partition, answered: true, nowMs: nowMs()) }
            return answer
        } catch {
            silent.withLock { $0.end(partition, answered: error.kind != .away, nowMs: nowMs()) }
            throw error.error
        }
    }

    /// As `ends`, with the kind of failure.
    func askEnds(_ partition: Int, waitMs: Int64) throws(KafkaFailure) -> Range<Seq> {
        try patiently(waitMs) { reader, untilMs throws(KafkaFailure) in try reader.ends(partition, untilMs: untilMs) }
    }

    /// As `read`, with the kind of failure.
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

    /// Some seqs had no record: they are read again, which begins with another fetch from the first of them on. Only
    /// what is missing both times is a hole.
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
        // What was trimmed meanwhile was no hole.
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

    /// Nil beyond the log's end.
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

    /// Asks until there is an answer, or no hope of one.
    private func patiently<R>(
        _ waitMs: Int64,
        _ question: (RangeReader, _ untilMs: Int64) throws(KafkaFailure) -> R
    ) throws(KafkaFailure) -> R {
        var untilMs = nowMs() + waitMs
        var lastingUntilMs: Int64?
        while true {
            do throws(KafkaFailure) {
                return try pool.withReader { reader throws(KafkaFailure) in try question(reader, untilMs) }
            } catch {
                var endMs = untilMs
                switch error.kind {
                case .outOfRange, .told: throw error
                case .lasting:
                    endMs = lastingUntilMs ?? nowMs() + Self.doubtMs
                    lastingUntilMs = endMs
                    // What is asked before that has its time.
                    untilMs = max(untilMs, endMs + waitMs)
                case .away: break
                }
                guard nowMs() + Self.pauseMs < endMs else { throw error }
                usleep(UInt32(Self.pauseMs) * 1_000)
            }
        }
    }

    func close() {
        pool.close()
    }
}
