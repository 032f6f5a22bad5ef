internal import Glibc
package import ReelCore
internal import Synchronization

/// The connection between a tail's sink and the threads of its log. One thread at a time uses it.
///
/// It guarantees what `LogTail.cancel` promises: the lock is held while the sink is called. The lock is recursive,
/// because a sink may cancel its own tail.
package final class TailHandle: LogTail, @unchecked Sendable {
    package let partition: Int
    /// The next seq to deliver. Used only by the thread that delivers, one at a time.
    package var next: Seq
    /// True once the log has checked the tail's first seq. Used only by the thread that delivers.
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

    /// True if the tail was cancelled or has failed.
    package var hasEnded: Bool { isOver.load(ordering: .acquiring) }

    package func deliver(_ batch: RecordBatch) {
        locked {
            guard let sink else { return }
            next = batch.seqs.upperBound
            sink.received(batch)
        }
    }

    /// True if the sink can accept a batch without blocking, or the tail has ended.
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
