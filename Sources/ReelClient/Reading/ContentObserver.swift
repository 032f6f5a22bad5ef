internal import Synchronization

/// One observer of a stream's readable content.
final class ContentObserver: Sendable {
    private typealias Waiter = CheckedContinuation<Void, Never>

    private struct State {
        /// The changes that were not read yet; nil: none. It may be empty if only the completeness has changed.
        var pending: ContentChanges? = ContentChanges(isReset: true)
        var version = 0
        /// True if the version does not count the last change yet.
        var isSignalDue = false
        var isEnded = false
        var waits = 0
        var waiters: [Int: Waiter] = [:]
    }

    private let state = Mutex(State())

    var version: Int { state.withLock { $0.version } }

    func add(_ changes: ContentChanges) {
        state.withLock { state in
            state.isSignalDue = true
            if state.pending == nil { state.pending = changes } else { state.pending?.add(changes) }
        }
    }

    /// Returns the changes that were not read yet, and forgets them; nil: nothing has changed.
    func take() -> ContentChanges? { state.withLock { $0.pending.take() } }

    /// Resumes the calls that wait, if the content has changed.
    ///
    /// - Parameter isEnd: true if the stream is closed. No call waits after that.
    func signal(isEnd: Bool = false) {
        let waiters = state.withLock { state in
            state.isEnded = state.isEnded || isEnd
            guard state.isSignalDue || isEnd else { return [Waiter]() }
            state.isSignalDue = false
            state.version += 1
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume() }
    }

    func wait(after version: Int) async {
        let number = state.withLock { state in
            state.waits += 1
            return state.waits
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if Task.isCancelled || state.isEnded || state.version > version { return true }
                    state.waiters[number] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: number) }?.resume()
        }
    }
}
