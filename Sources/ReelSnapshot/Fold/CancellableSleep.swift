import Glibc

/// A sleep that another thread can end early. Once ended, it never sleeps again.
final class CancellableSleep: @unchecked Sendable {
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var isRung = false

    init() {
        pthread_mutex_init(lock, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        // A change of the wall clock must not make a wait longer.
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_mutex_destroy(lock)
        pthread_cond_destroy(condition)
        lock.deallocate()
        condition.deallocate()
    }

    /// Ends all waits, also those that begin later. From any thread.
    func ring() {
        pthread_mutex_lock(lock)
        isRung = true
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(lock)
    }

    /// Waits `ms` milliseconds, or until `ring` is called.
    func wait(ms: Int32) {
        var until = timespec()
        clock_gettime(CLOCK_MONOTONIC, &until)
        let nanoseconds = until.tv_nsec + Int(ms) * 1_000_000
        until.tv_sec += nanoseconds / 1_000_000_000
        until.tv_nsec = nanoseconds % 1_000_000_000
        pthread_mutex_lock(lock)
        while !isRung, pthread_cond_timedwait(condition, lock, &until) == 0 {}
        pthread_mutex_unlock(lock)
    }
}
