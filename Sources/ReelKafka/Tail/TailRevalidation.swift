internal import ReelBase
internal import ReelCore
internal import ReelLog

/// The source that a revalidation reads.
protocol RevalidationSource: Sendable {
    /// Reads a range; see `PartitionReading.ask`.
    func ask(
        _ partition: Int,
        from: Seq,
        to: Seq,
        bytes: Int,
        waitMs: Int64
    ) throws(KafkaFailure) -> RecordBatch
    /// Returns the ends of a partition; see `PartitionReading.askEnds`.
    func askEnds(_ partition: Int, waitMs: Int64) throws(KafkaFailure) -> Range<Seq>
}

/// The revalidation of a tail that met something else than the next record: a missing offset, an error, or a changed
/// topic. Another handle checks that the log still has the last record that was read, and reads what follows it. The
/// revalidation is repeated until the log has answered.
struct TailRevalidation: Sendable {
    enum Outcome: Sendable {
        /// The log is the same. The batch has the next records, or none; `last` is the last known record.
        case proceed(RecordBatch, last: Witness?)
        /// The tail ends with an error; `last` is the last record that it knew.
        case failed(LogError, last: Witness?)
    }

    let tail: TailHandle
    /// The last record that was delivered.
    let last: Witness?
    /// Called once, with the outcome.
    let done: @Sendable (Outcome) -> Void
    /// When to try next, in milliseconds.
    private(set) var dueMs: Int64 = 0
    private var pauseMs: Int64 = 20
    private var earlyEndSinceMs: Int64?

    private static let pauseMsMax: Int64 = 1_000
    /// Timeout for one question, in milliseconds. It is then asked again, after other revalidations had their turn.
    static let patienceMs: Int64 = 1_000
    /// How long an early end of the log is asked for again, in milliseconds, before it counts. A broker that was hung
    /// answers with its old end until it learns that another broker leads now.
    static let endDoubtMs: Int64 = 5_000

    init(tail: TailHandle, last: Witness?, done: @escaping @Sendable (Outcome) -> Void) {
        self.tail = tail
        self.last = last
        self.done = done
    }

    /// Asks once; nil: the caller must ask again.
    mutating func ask(_ log: any RevalidationSource, clock: () -> Int64 = MonotonicClock.nowMs) -> Outcome? {
        do throws(KafkaFailure) {
            let outcome = try next(log)
            // Compared last: if the log was replaced before, the answers above may be of another log.
            if let last { try compare(last, log) }
            return outcome
        } catch {
            let nowMs = clock()
            let isDoubtful: Bool
            if error.error.code == .aheadOfLog {
                let sinceMs = earlyEndSinceMs ?? nowMs
                earlyEndSinceMs = sinceMs
                isDoubtful = nowMs - sinceMs < Self.endDoubtMs
            } else {
                // An early end counts only if every answer in that time reports it.
                earlyEndSinceMs = nil
                isDoubtful = error.kind == .away
            }
            guard isDoubtful, !tail.hasEnded else { return .failed(error.error, last: last) }
            dueMs = nowMs + pauseMs
            pauseMs = min(2 * pauseMs, Self.pauseMsMax)
            return nil
        }
    }

    private func next(_ log: any RevalidationSource) throws(KafkaFailure) -> Outcome {
        let (partition, next) = (tail.partition, tail.next)
        let batch = try log.ask(partition, from: next, to: largestInteger, bytes: 1 << 20, waitMs: Self.patienceMs)
        if batch.seqs.isEmpty {
            let ends = try log.askEnds(partition, waitMs: Self.patienceMs)
            guard next <= ends.upperBound else {
                throw KafkaFailure(.told, .beyondTheEnd(next, last: ends.upperBound - 1))
            }
        }
        return .proceed(batch, last: batch.entries.last.map(batch.witness(of:)) ?? last)
    }

    /// Throws if the record that was read last is another one now. A trimmed record cannot be compared.
    private func compare(_ last: Witness, _ log: any RevalidationSource) throws(KafkaFailure) {
        let batch: RecordBatch
        do throws(KafkaFailure) {
            batch = try log.ask(tail.partition, from: last.seq, to: last.seq, bytes: 1, waitMs: Self.patienceMs)
        } catch  where error.error.code == .truncated {
            return
        }
        guard let found = batch.entries.first else {
            let end = try log.askEnds(tail.partition, waitMs: Self.patienceMs).upperBound
            throw KafkaFailure(.told, .beyondTheEnd(tail.next, last: end - 1))
        }
        guard batch.witness(of: found) == last else {
            let message =
                "partition \(tail.partition) was rolled back and written again: the record at seq \(last.seq) is"
                + " another one than was read before"
            throw KafkaFailure(.told, LogError(.diverged, message, seq: last.seq - 1))
        }
    }
}
