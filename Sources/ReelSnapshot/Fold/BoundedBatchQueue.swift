import ReelCore
import ReelLog

/// A queue of batches from the log's thread to the fold thread, bounded in records and bytes. When it is full, the
/// log's thread waits, and with it all tails of this log object. So a node with a large lag reads no faster than it
/// folds.
final class BoundedBatchQueue: LogSink, Sendable {
    /// The content of the queue that the fold thread takes.
    enum Mail {
        /// Consecutive batches.
        case batches([RecordBatch])
        /// Nothing is there to fold, and other partitions need memory.
        case trim
        /// The tail has ended with an error.
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
        var mustTrim = false

        var isEmpty: Bool { batches.isEmpty && failure == nil && !isClosed && !mustTrim }

        mutating func take() -> Mail {
            if isClosed { return .closed }
            defer { mustTrim = false }
            guard !batches.isEmpty else { return failure.map { .failed($0) } ?? (mustTrim ? .trim : .closed) }
            defer { (batches, records, bytes) = ([], 0, 0) }
            return .batches(batches)
        }
    }

    private let (recordsMax, bytesMax): (Int, Int)
    private let state = Monitor(State())

    /// A queue that accepts a batch while it holds fewer than `records` records and fewer than `bytes` bytes.
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

    /// Asks the fold thread to free memory. If it has batches to fold, it frees memory after each of them anyway.
    func trim() {
        state.change { $0.mustTrim = true }
    }

    /// Closes the queue, and wakes both threads for the last time.
    func close() {
        state.change { $0.isClosed = true }
    }

    /// Waits until the queue holds something, and takes it.
    func take() -> Mail {
        state.wait(until: { !$0.isEmpty }) { $0.take() }
    }

    /// Takes the content of the queue without waiting; nil: it is empty.
    func takeNow() -> Mail? {
        var mail: Mail?
        state.change { if !$0.isEmpty { mail = $0.take() } }
        return mail
    }
}
