internal import Glibc
internal import ReelLog
internal import Synchronization

/// A pool of handles that read ranges. Each serves one caller at a time, on the caller's thread.
final class ReaderPool: @unchecked Sendable {
    private struct State {
        var idle: [RangeReader] = []
        var isClosed = false
    }

    private let make: @Sendable () throws(LogError) -> RangeReader
    private let state = Mutex(State())
    private let free: UnsafeMutablePointer<sem_t>

    /// The number of handles. Further callers wait.
    static let readersMax = 8

    init(_ make: @escaping @Sendable () throws(LogError) -> RangeReader) {
        self.make = make
        free = .allocate(capacity: 1)
        sem_init(free, 0, UInt32(Self.readersMax))
    }

    deinit {
        sem_destroy(free)
        free.deallocate()
    }

    /// Lends a reader to `body`.
    func withReader<R>(_ body: (RangeReader) throws(KafkaFailure) -> R) throws(KafkaFailure) -> R {
        while sem_wait(free) != 0 {}
        defer { sem_post(free) }
        let reader = try take()
        defer { state.withLock { if !$0.isClosed { $0.idle.append(reader) } } }
        return try body(reader)
    }

    private func take() throws(KafkaFailure) -> RangeReader {
        let (idle, isClosed) = state.withLock { ($0.idle.popLast(), $0.isClosed) }
        guard !isClosed else { throw KafkaFailure(.told, .closed) }
        if let idle { return idle }
        do throws(LogError) {
            return try make()
        } catch {
            throw KafkaFailure(.lasting, error)
        }
    }

    /// Closes the pool. Later calls throw; running calls continue.
    func close() {
        let idle = state.withLock { state in
            state.isClosed = true
            defer { state.idle = [] }
            return state.idle
        }
        withExtendedLifetime(idle) {}
    }
}
