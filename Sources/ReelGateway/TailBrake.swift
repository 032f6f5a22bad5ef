import Glibc
import Synchronization

/// Holds the tails up while the loops have too much of them before them: what the log brings faster than the slowest
/// loop takes it would pile up in memory. The log's thread waits, and with it all that it reads.
final class TailBrake: @unchecked Sendable {
    /// A batch on its way to all loops.
    final class Load: Sendable {
        private let brake: TailBrake
        private let bytes: Int
        private let loopsLeft: Atomic<Int>

        fileprivate init(_ brake: TailBrake, bytes: Int, loops: Int) {
            self.brake = brake
            self.bytes = bytes
            loopsLeft = Atomic(loops)
        }

        /// Another loop has it.
        func taken() {
            if loopsLeft.wrappingSubtract(1, ordering: .relaxed).newValue == 0 { brake.took(bytes) }
        }
    }

    /// With so many bytes before the loops the tails wait.
    static let bytesMax = 8 << 20

    private let loops: Int
    private var bytes = 0
    private var waitingTails = 0
    private var isReleased = false
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let eased = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    /// For so many loops.
    init(loops: Int) {
        self.loops = loops
        pthread_mutex_init(lock, nil)
        pthread_cond_init(eased, nil)
    }

    deinit {
        pthread_mutex_destroy(lock)
        pthread_cond_destroy(eased)
        lock.deallocate()
        eased.deallocate()
    }

    /// How many tails wait now.
    var waiting: Int {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return waitingTails
    }

    /// Waits until there is room, and counts a batch of so many bytes as on its way. Not on an event loop.
    func load(bytes: Int) -> Load {
        pthread_mutex_lock(lock)
        waitingTails += 1
        while self.bytes >= Self.bytesMax, !isReleased { pthread_cond_wait(eased, lock) }
        waitingTails -= 1
        self.bytes += bytes
        pthread_mutex_unlock(lock)
        return Load(self, bytes: bytes, loops: loops)
    }

    private func took(_ bytes: Int) {
        pthread_mutex_lock(lock)
        self.bytes -= bytes
        pthread_cond_broadcast(eased)
        pthread_mutex_unlock(lock)
    }

    /// Nothing waits any more: the loops end.
    func release() {
        pthread_mutex_lock(lock)
        isReleased = true
        pthread_cond_broadcast(eased)
        pthread_mutex_unlock(lock)
    }
}
