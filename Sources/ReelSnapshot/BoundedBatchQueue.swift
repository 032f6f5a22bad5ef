import ReelCore
import ReelLog

/// Between the log's thread and the folder's: batches in order, bounded in records and bytes. When it is full the log's
/// thread waits, and with it this log's tails; so a node that is far behind reads no faster than it folds.
final class BoundedBatchQueue: LogSink, Sendable {
    /// What the folder finds in it.
    enum Mail {
        /// Batches that follow each other.
        case batches([RecordBatch])
        /// The tail has ended.
        case failed(LogError)
        /// The node stops.
        case closed
    }

    private struct State {
        var batches: [RecordBatch] = []
        var records = 0
        var bytes = 0
        var failure: LogError?
        var isClosed = false

        var isEmpty: Bool { batches.isEmpty && failure == nil && !isClosed }

        mutating func take() -> Mail {
            if isClosed { return .closed }
            guard !batches.isEmpty else { return failure.map { .failed($0) } ?? .closed }
            defer { (batches, records, bytes) = ([], 0, 0) }
            return .batches(batches)
        }
    }

    private let (recordsMax, bytesMax): (Int, Int)
    private let state = Monitor(State())

    /// A mailbox that takes a batch as long as it holds fewer records, and fewer bytes, than these.
    init(records: Int, bytes: Int) {
        (recordsMax, bytesMax) = (records, bytes)
    }

    func received(_ batch: RecordBatch) {
        let bytes = batch.entries.reduce(0) { $0 + $1.byteCount }
        state.wait(until: { $0.records < recordsMax && $0.bytes < bytesMax || $0.isClosed }) { state in
            state.batches.append(batch)
            state.records += batch.entries.count
            state.bytes += bytes
        }
    }

    func failed(_ error: LogError) {
        state.change { $0.failure = error }
    }

    /// Wakes both sides for the last time.
    func close() {
        state.change { $0.isClosed = true }
    }

    /// Waits until there is something.
    func take() -> Mail {
        state.wait(until: { !$0.isEmpty }) { $0.take() }
    }

    /// Returns what the mailbox holds, without waiting; nil: it is empty.
    func takeNow() -> Mail? {
        var mail: Mail?
        state.change { if !$0.isEmpty { mail = $0.take() } }
        return mail
    }
}
