package import ReelCore
package import ReelLog
import Synchronization

/// A sink that keeps all records and errors that it receives, so that a test can read them.
package final class CollectingSink: LogSink {
    private struct State {
        var records: [Seen] = []
        var batches: [Range<Seq>] = []
        var error: LogError?
    }
    private let state = Mutex(State())
    private let onBatch: (@Sendable (RecordBatch) -> Void)?

    private let ready: @Sendable () -> Bool

    package init(
        onBatch: (@Sendable (RecordBatch) -> Void)? = nil,
        ready: @escaping @Sendable () -> Bool = { false }
    ) {
        self.ready = ready
        self.onBatch = onBatch
    }

    package var hasRoom: Bool { ready() }

    package var records: [Seen] { state.withLock { $0.records } }
    package var texts: [String] { records.map(\.text) }
    package var count: Int { state.withLock { $0.records.count } }
    package var batches: [Range<Seq>] { state.withLock { $0.batches } }
    package var error: LogError? { state.withLock { $0.error } }

    package func received(_ batch: RecordBatch) {
        state.withLock { state in
            state.records += batch.seen
            state.batches.append(batch.seqs)
        }
        onBatch?(batch)
    }

    package func failed(_ error: LogError) {
        state.withLock { $0.error = error }
    }
}
