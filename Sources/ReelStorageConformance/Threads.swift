internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Threads for calls that block. A task must not block, since all tasks share a few threads.
enum Threads {
    /// Runs all bodies at the same time and waits for them. Throws the first error.
    static func run(_ bodies: [@Sendable () throws -> Void]) throws {
        let errors = Mutex<[any Error]>([])
        let threads = bodies.map { body in
            start {
                do { try body() } catch { errors.withLock { $0.append(error) } }
            }
        }
        for thread in threads { pthread_join(thread, nil) }
        if let error = errors.withLock({ $0.first }) { throw error }
    }

    /// Starts a thread that nobody waits for.
    static func detach(_ body: @escaping @Sendable () -> Void) { pthread_detach(start(body)) }

    private static func start(_ body: @escaping @Sendable () -> Void) -> pthread_t {
        let context = Unmanaged.passRetained(ThreadBody(body)).toOpaque()
        #if canImport(Darwin)
        var thread: pthread_t?
        #else
        var thread = pthread_t()
        #endif
        let result = pthread_create(&thread, nil, runThread, context)
        precondition(result == 0, "the machine has no room for another thread")
        #if canImport(Darwin)
        return thread.unsafelyUnwrapped
        #else
        return thread
        #endif
    }
}

/// The function of a thread, as an object for C.
private final class ThreadBody: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}

#if canImport(Darwin)
private func runThread(_ context: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
    Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue().run()
    return nil
}
#else
private func runThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let context { Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue().run() }
    return nil
}
#endif

/// The first of two values: that of some blocking work, or another one after a time.
enum FirstOf {
    /// Runs `work` on a thread of its own and returns its value; `instead` is returned after `limit`.
    static func value<T: Sendable>(
        work: @escaping @Sendable () -> T,
        after limit: Duration,
        instead: @escaping @Sendable () -> T
    ) async -> T {
        await withCheckedContinuation { continuation in
            let waiting = Mutex<CheckedContinuation<T, Never>?>(continuation)
            let answer = Answer { value in
                waiting.withLock { waiting in
                    defer { waiting = nil }
                    return waiting
                }?.resume(returning: value)
            }
            let timer = Task {
                do { try await Task.sleep(for: limit) } catch { return }
                answer.give(instead())
            }
            Threads.detach {
                answer.give(work())
                timer.cancel()
            }
        }
    }

    private final class Answer<T: Sendable>: Sendable {
        let give: @Sendable (T) -> Void

        init(_ give: @escaping @Sendable (T) -> Void) { self.give = give }
    }
}
