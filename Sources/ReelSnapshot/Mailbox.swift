import Glibc
import ReelCore
import ReelLog
import Synchronization

/// Between the log's thread and the folder's: batches in order, bounded in records. When it is full the log's thread
/// waits, and with it this log's tails; so a node that is far behind reads no faster than it folds.
final class Mailbox: LogSink, @unchecked Sendable {
    /// What the folder finds in it.
    enum Mail {
        /// Batches that follow each other.
        case batches([RecordBatch])
        /// The tail has ended.
        case failed(LogError)
        /// The node stops.
        case closed
    }

    private let capacity: Int
    private var batches: [RecordBatch] = []
    private var records = 0
    private var failure: LogError?
    private var isClosed = false
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private let filled: UnsafeMutablePointer<pthread_cond_t>
    private let emptied: UnsafeMutablePointer<pthread_cond_t>

    /// A mailbox that takes a batch as long as it holds fewer records than `capacity`.
    init(capacity: Int) {
        self.capacity = capacity
        lock = .allocate(capacity: 1)
        filled = .allocate(capacity: 1)
        emptied = .allocate(capacity: 1)
        pthread_mutex_init(lock, nil)
        pthread_cond_init(filled, nil)
        pthread_cond_init(emptied, nil)
    }

    deinit {
        pthread_mutex_destroy(lock)
        pthread_cond_destroy(filled)
        pthread_cond_destroy(emptied)
        lock.deallocate()
        filled.deallocate()
        emptied.deallocate()
    }

    func received(_ batch: RecordBatch) {
        pthread_mutex_lock(lock)
        while records >= capacity, !isClosed { pthread_cond_wait(emptied, lock) }
        batches.append(batch)
        records += batch.entries.count
        pthread_cond_signal(filled)
        pthread_mutex_unlock(lock)
    }

    func failed(_ error: LogError) {
        pthread_mutex_lock(lock)
        failure = error
        pthread_cond_signal(filled)
        pthread_mutex_unlock(lock)
    }

    /// Wakes both sides for the last time.
    func close() {
        pthread_mutex_lock(lock)
        isClosed = true
        pthread_cond_broadcast(filled)
        pthread_cond_broadcast(emptied)
        pthread_mutex_unlock(lock)
    }

    /// Waits until there is something.
    func take() -> Mail {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        while batches.isEmpty, failure == nil, !isClosed { pthread_cond_wait(filled, lock) }
        if isClosed { return .closed }
        guard !batches.isEmpty else { return failure.map { .failed($0) } ?? .closed }
        defer {
            batches = []
            records = 0
            pthread_cond_signal(emptied)
        }
        return .batches(batches)
    }
}
