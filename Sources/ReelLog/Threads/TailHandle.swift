internal import Glibc
package import ReelCore
internal import Synchronization

/// A tail between the threads of its log, one at a time, and its sink. It keeps the promise of `LogTail.cancel`: a lock
/// is held while the sink is called, and the lock is recursive because a sink may cancel its own tail.
package final class TailHandle: LogTail, @unchecked Sendable {
    package let partition: Int
    /// The next seq to deliver; belongs to who delivers, one at a time.
    package var next: Seq
    /// The log has looked where it begins; belongs to who delivers.
    var hasStarted = false
    private var sink: (any LogSink)?
    private let isOver = Atomic(false)
    private let lock: UnsafeMutablePointer<pthread_mutex_t>

    package init(partition: Int, from: Seq, sink: any LogSink) {
        self.partition = partition
        next = from
        self.sink = sink
        lock = .allocate(capacity: 1)
        var attributes = pthread_mutexattr_t()
        pthread_mutexattr_init(&attributes)
        pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_RECURSIVE))
        pthread_mutex_init(lock, &attributes)
        pthread_mutexattr_destroy(&attributes)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    /// It has been cancelled or has failed.
    package var hasEnded: Bool { isOver.load(ordering: .acquiring) }

    package func deliver(_ batch: RecordBatch) {
        locked {
            guard let sink else { return }
            next = batch.seqs.upperBound
            sink.received(batch)
        }
    }

    /// Whether its sink would take a batch without waiting for anybody.
    var hasRoom: Bool { locked { sink?.hasRoom ?? true } }

    package func fail(_ error: LogError) {
        locked {
            guard let sink else { return }
            end()
            sink.failed(error)
        }
    }

    package func cancel() {
        locked { end() }
    }

    private func end() {
        sink = nil
        isOver.store(true, ordering: .releasing)
    }

    private func locked<R>(_ body: () -> R) -> R {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return body()
    }
}
