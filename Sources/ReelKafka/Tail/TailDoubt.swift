internal import Glibc
internal import ReelCore
internal import ReelLog

/// A tail that met something else than the next record: a lost connection, a missing offset, an error. Another handle
/// looks whether the log still has what was read last, and what comes next; it asks until the log has answered.
struct TailDoubt: Sendable {
    enum Outcome: Sendable {
        /// What comes next, nothing if that is nothing yet; and the last record known by now.
        case goOn(RecordBatch, last: Witness?)
        case failed(LogError)
    }

    let tail: RunningTail
    /// The last record that was delivered.
    let last: Witness?
    let reading: PartitionReading
    /// Told the outcome, once, unless the tail has ended.
    let done: @Sendable (Outcome) -> Void

    private static let pauseMsMax: UInt32 = 1_000

    /// On a thread of its own: the partition's leader may be away while others are there.
    func look() {
        do throws(LogError) {
            _ = try LogThread("kafka-doubt", ask)
        } catch {
            done(.failed(error))
        }
    }

    private func ask() {
        var pauseMs: UInt32 = 20
        while !tail.hasEnded {
            do throws(LogError) {
                return done(try outcome())
            } catch {
                switch error.code {
                case .truncated, .aheadOfLog, .diverged: return done(.failed(error))
                default: break
                }
            }
            usleep(pauseMs * 1_000)
            pauseMs = min(2 * pauseMs, Self.pauseMsMax)
        }
    }

    private func outcome() throws(LogError) -> Outcome {
        let (partition, next) = (tail.partition, tail.next)
        if let last { try compare(last) }
        let batch = try reading.read(partition, from: next, to: largestInteger, bytes: 1 << 20)
        if batch.seqs.isEmpty {
            let ends = try reading.ends(partition)
            guard next <= ends.upperBound else { throw .beyondTheEnd(next, last: ends.upperBound - 1) }
        }
        return .goOn(batch, last: batch.entries.last.map(batch.witness(of:)) ?? last)
    }

    /// The record that was read last must still be what it was, if it is kept.
    private func compare(_ last: Witness) throws(LogError) {
        let batch: RecordBatch
        do throws(LogError) {
            batch = try reading.read(tail.partition, from: last.seq, to: last.seq, bytes: 1)
        } catch  where error.code == .truncated {
            return
        }
        guard let found = batch.entries.first else {
            let end = try reading.ends(tail.partition).upperBound
            throw .beyondTheEnd(tail.next, last: end - 1)
        }
        guard batch.witness(of: found) == last else {
            throw LogError(
                .diverged,
                "partition \(tail.partition) was rolled back and written again: the record at seq \(last.seq) is"
                    + " another one than was read before",
                seq: last.seq - 1
            )
        }
    }
}
