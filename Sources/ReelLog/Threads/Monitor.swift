internal import Glibc

/// A state behind a lock, on which threads wait for one another. Not for event loops, which never wait.
package final class Monitor<State>: @unchecked Sendable {
    private var state: State
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    package init(_ state: sending State) {
        self.state = state
        pthread_mutex_init(lock, nil)
        pthread_cond_init(changed, nil)
    }

    deinit {
        pthread_mutex_destroy(lock)
        pthread_cond_destroy(changed)
        lock.deallocate()
        changed.deallocate()
    }

    /// Lends the state to be looked at.
    package func read<R>(_ body: (State) -> R) -> R {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return body(state)
    }

    /// Lends the state to be changed: all who wait look at it again.
    package func change<R>(_ body: (inout State) -> R) -> R {
        wait(until: { _ in true }, then: body)
    }

    /// Waits until the state is so, and then lends it to be changed.
    package func wait<R>(until isSo: (State) -> Bool, then body: (inout State) -> R) -> R {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        while !isSo(state) { pthread_cond_wait(changed, lock) }
        defer { pthread_cond_broadcast(changed) }
        return body(&state)
    }
}
