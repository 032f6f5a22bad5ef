internal import ReelCore
internal import ReelLog
internal import Synchronization

/// Reads ranges and ends of one topic's partitions, and believes in no hole that it has seen only once.
final class PartitionReading: Sendable {
    private let topic: String
    private let pool: ReaderPool
    private let counters: KafkaCounters

    /// So long a call waits for the brokers.
    static let waitMs: Int64 = 8_000

    init(
        topic: String,
        configuration: KafkaConfiguration,
        counters: KafkaCounters,
        log: @escaping KafkaLogLine
    ) {
        self.topic = topic
        self.counters = counters
        pool = ReaderPool { () throws(LogError) in
            try RangeReader(topic: topic, configuration: configuration, log: log)
        }
    }

    /// The first seq kept and the one that will be given next.
    func ends(_ partition: Int) throws(LogError) -> Range<Seq> {
        let untilMs = nowMs() + Self.waitMs
        let ends = try pool.withReader { reader throws(KafkaFailure) in try reader.ends(partition, untilMs: untilMs) }
        switch ends {
        case .success(let ends): return ends
        case .failure(let failure): throw failure.error
        }
    }

    /// Records `from ... to`; see `EventLog.read`.
    func read(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch {
        guard from >= 0 else { throw .belowTheFirst(from, first: try ends(partition).lowerBound) }
        guard from <= to, from < largestInteger else { return RecordBatch(partition: partition, empty: from..<from) }
        guard let once = try readOnce(partition, from: from, to: min(to, largestInteger), bytes: bytes) else {
            return RecordBatch(partition: partition, empty: from..<from)
        }
        let entries = once.messages.entries
        let seqs = from..<once.end
        if entries.count == seqs.count {
            return RecordBatch(partition: partition, seqs: seqs, entries: entries) { [messages = once.messages] in
                withExtendedLifetime(messages) {}
            }
        }
        return try readAgain(partition, seqs, once.messages)
    }

    /// Some seqs had no record: they are read again by another handle. Only what is missing both times is a hole.
    private func readAgain(
        _ partition: Int,
        _ seqs: Range<Seq>,
        _ first: KafkaMessages
    ) throws(LogError) -> RecordBatch {
        counters.rereads.add(1, ordering: .relaxed)
        guard let again = try readOnce(partition, from: seqs.lowerBound, to: seqs.upperBound - 1, bytes: .max),
            again.end == seqs.upperBound
        else {
            throw LogError(.logUnavailable, "the log of partition \(partition) ended before seq \(seqs.upperBound - 1)")
        }
        var entries = first.entries
        let known = Set(entries.map(\.seq))
        entries += again.messages.entries.filter { !known.contains($0.seq) }
        entries.sort { $0.seq < $1.seq }
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
        bytes: Int
    ) throws(LogError) -> RangeReader.Reading? {
        let untilMs = nowMs() + Self.waitMs
        let reading = try pool.withReader { reader throws(KafkaFailure) in
            try reader.read(partition, from: from, to: to, bytes: bytes, untilMs: untilMs)
        }
        switch reading {
        case .success(let reading): return reading
        case .failure(let failure) where failure.kind == .outOfRange:
            let ends = try ends(partition)
            guard from >= ends.lowerBound else { throw .belowTheFirst(from, first: ends.lowerBound) }
            guard from >= ends.upperBound else { throw failure.error }
            return nil
        case .failure(let failure): throw failure.error
        }
    }

    func close() {
        pool.close()
    }
}
