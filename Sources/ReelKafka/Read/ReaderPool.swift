internal import Glibc
internal import ReelLog
internal import Synchronization

/// Handles that read ranges, kept warm: each serves one caller at a time, on the caller's thread.
final class ReaderPool: @unchecked Sendable {
    private struct State {
        var idle: [RangeReader] = []
        var isClosed = false
    }

    private let make: @Sendable () throws(LogError) -> RangeReader
    private let state = Mutex(State())
    private let free: UnsafeMutablePointer<sem_t>

    /// More callers than these wait for each other.
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
    func withReader<R>(_ body: (RangeReader) throws(KafkaFailure) -> R) throws(LogError) -> Result<R, KafkaFailure> {
        while sem_wait(free) != 0 {}
        defer { sem_post(free) }
        let idle = try state.withLock { state throws(LogError) in
            guard !state.isClosed else { throw .closed }
            return state.idle.popLast()
        }
        let reader = if let idle { idle } else { try make() }
        defer { state.withLock { if !$0.isClosed { $0.idle.append(reader) } } }
        do throws(KafkaFailure) {
            return .success(try body(reader))
        } catch {
            return .failure(error)
        }
    }

    /// Later calls are errors. Those that run go on.
    func close() {
        let idle = state.withLock { state in
            state.isClosed = true
            defer { state.idle = [] }
            return state.idle
        }
        withExtendedLifetime(idle) {}
    }
}
