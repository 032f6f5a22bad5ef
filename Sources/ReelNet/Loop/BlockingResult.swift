import Glibc
import Synchronization

/// A result that one thread gives and another thread waits for.
final class BlockingResult<T: Sendable>: @unchecked Sendable {
    private let result = Mutex<Result<T, any Error>?>(nil)
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() {
        sem_init(semaphore, 0, 0)
    }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    func give(_ value: Result<T, any Error>) {
        result.withLock { $0 = value }
        sem_post(semaphore)
    }

    func wait() throws -> T {
        while true {
            if let result = result.withLock({ $0 }) { return try result.get() }
            sem_wait(semaphore)
        }
    }
}
