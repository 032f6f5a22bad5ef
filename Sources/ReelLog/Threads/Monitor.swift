internal import Glibc

/// A state protected by a mutex, with a condition variable on which threads wait. Not for event loops, which never
/// wait.
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

    /// Calls `body` with the state, under the lock.
    package func read<R>(_ body: (State) -> R) -> R {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return body(state)
    }

    /// Calls `body` to change the state, under the lock, and wakes all waiting threads.
    package func change<R>(_ body: (inout State) -> R) -> R {
        wait(until: { _ in true }, then: body)
    }

    /// Waits until `isSo` returns true for the state, then calls `body` to change the state. All under the lock.
    package func wait<R>(until isSo: (State) -> Bool, then body: (inout State) -> R) -> R {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        while !isSo(state) { pthread_cond_wait(changed, lock) }
        defer { pthread_cond_broadcast(changed) }
        return body(&state)
    }
}
