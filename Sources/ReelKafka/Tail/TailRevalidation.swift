internal import ReelCore
internal import ReelLog

/// What a doubt asks.
protocol RevalidationSource: Sendable {
    /// See `PartitionReading.ask`.
    func ask(
        _ partition: Int,
        from: Seq,
        to: Seq,
        bytes: Int,
        waitMs: Int64
    ) throws(KafkaFailure) -> RecordBatch
    /// See `PartitionReading.askEnds`.
    func askEnds(_ partition: Int, waitMs: Int64) throws(KafkaFailure) -> Range<Seq>
}

/// A tail that met something else than the next record: a missing offset, an error, a topic that is another one.
/// Another handle looks whether the log still has what was read last, and what comes next; it asks until the log has
/// answered.
struct TailRevalidation: Sendable {
    enum Outcome: Sendable {
        /// What comes next, nothing if that is nothing yet; and the last record known by now.
        case goOn(RecordBatch, last: Witness?)
        /// The tail ends; the last record that it knew.
        case failed(LogError, last: Witness?)
    }

    let tail: TailHandle
    /// The last record that was delivered.
    let last: Witness?
    /// Told the outcome, once.
    let done: @Sendable (Outcome) -> Void
    /// When it is to be looked at again.
    private(set) var dueMs: Int64 = 0
    private var pauseMs: Int64 = 20
    private var earlyEndSinceMs: Int64?

    private static let pauseMsMax: Int64 = 1_000
    /// So long a question waits for its answer. It is asked again, and meanwhile others have their turn.
    static let patienceMs: Int64 = 1_000
    /// So long it asks again whether the log really ends before what was read: a broker that was hung answers for what
    /// it led, as far as it got then, until it hears that another one leads it now.
    static let endDoubtMs: Int64 = 5_000

    init(tail: TailHandle, last: Witness?, done: @escaping @Sendable (Outcome) -> Void) {
        self.tail = tail
        self.last = last
        self.done = done
    }

    /// Asks once; nil if it has to be asked again.
    mutating func ask(_ log: any RevalidationSource, clock: () -> Int64 = nowMs) -> Outcome? {
        do throws(KafkaFailure) {
            let outcome = try next(log)
            // Last: a log that was replaced before that must not have answered anything else.
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
                // An early end counts only as long as nothing else is heard.
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
        return .goOn(batch, last: batch.entries.last.map(batch.witness(of:)) ?? last)
    }

    /// The record that was read last must still be what it was, if it is kept.
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
