internal import Glibc
internal import ReelLog
internal import Synchronization

/// The doubts of a log's tails. A few threads look at all of them in turn, so that one whose leader is away holds up no
/// other; without a doubt there is no thread.
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

    /// Looks at the log until it has answered; tells the outcome on a thread of its own.
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

    /// What nobody will look at.
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
            if doubt.dueMs > nowMs() {
                usleep(UInt32(Self.restMs) * 1_000)
            } else if let outcome = doubt.ask(log) {
                doubt.done(outcome)
                continue
            }
            state.withLock { [doubt] in $0.waiting.append(doubt) }
        }
    }

    /// The doubt that is due first; nil ends the thread.
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
