internal import Glibc
internal import ReelBase
internal import ReelLog
internal import Synchronization

/// The running revalidations of a log's tails. A few threads handle all of them in turn, so that a partition without a
/// leader does not delay the others. Without revalidations there is no thread.
final class TailRevalidations: Sendable {
    private struct State {
        var waiting: [TailRevalidation] = []
        var threads = 0
    }

    private let log: any RevalidationSource
    private let state = Mutex(State())

    private static let threadsMax = 4
    private static let restMs: Int64 = 20

    init(asking log: any RevalidationSource) {
        self.log = log
    }

    /// Revalidates a tail until the log has answered. The outcome is reported on another thread.
    func look(_ doubt: TailRevalidation) {
        let isThreadNeeded = state.withLock { state in
            state.waiting.append(doubt)
            guard state.threads < Self.threadsMax else { return false }
            state.threads += 1
            return true
        }
        guard isThreadNeeded else { return }
        do throws(LogError) {
            try LogThread.detach("kafka-doubt") { self.run() }
        } catch {
            for doubt in withoutThread() { doubt.done(.failed(error, last: doubt.last)) }
        }
    }

    /// Returns the revalidations that no thread handles, after a thread could not be started.
    private func withoutThread() -> [TailRevalidation] {
        state.withLock { state in
            state.threads -= 1
            guard state.threads == 0 else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    private func run() {
        while var doubt = next() {
            if doubt.dueMs > MonotonicClock.nowMs() {
                usleep(UInt32(Self.restMs) * 1_000)
            } else if let outcome = doubt.ask(log) {
                doubt.done(outcome)
                continue
            }
            state.withLock { [doubt] in $0.waiting.append(doubt) }
        }
    }

    /// Returns the revalidation that is due first; nil: the thread ends.
    private func next() -> TailRevalidation? {
        state.withLock { state in
            guard let first = state.waiting.indices.min(by: { state.waiting[$0].dueMs < state.waiting[$1].dueMs })
            else {
                state.threads -= 1
                return nil
            }
            return state.waiting.remove(at: first)
        }
    }
}
