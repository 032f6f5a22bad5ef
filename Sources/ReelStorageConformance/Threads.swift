internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Threads for calls that block. A task must not block, since all tasks share a few threads.
enum Threads {
    /// The machine has no room for another thread.
    struct NoThread: Error, CustomStringConvertible {
        let description = "found no room for another thread on this machine"
    }

    /// Runs all bodies at the same time and waits for them. Throws the first error, or `NoThread`.
    static func run(_ bodies: [@Sendable () throws -> Void]) throws {
        let errors = Mutex<[any Error]>([])
        var threads: [pthread_t] = []
        for body in bodies {
            let thread = start {
                do { try body() } catch { errors.withLock { $0.append(error) } }
            }
            if let thread { threads.append(thread) } else { errors.withLock { $0.append(NoThread()) } }
        }
        for thread in threads { pthread_join(thread, nil) }
        if let error = errors.withLock({ $0.first }) { throw error }
    }

    /// Runs the body on a thread that the caller does not join. Returns false if there is no room for the thread.
    static func detach(_ body: @escaping @Sendable () -> Void) -> Bool {
        start(body).map { pthread_detach($0) } != nil
    }

    private static func start(_ body: @escaping @Sendable () -> Void) -> pthread_t? {
        let context = Unmanaged.passRetained(ThreadBody(body))
        #if canImport(Darwin)
        var thread: pthread_t?
        #else
        var thread = pthread_t()
        #endif
        guard pthread_create(&thread, nil, runThread, context.toOpaque()) == 0 else {
            context.release()
            return nil
        }
        return thread
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
    /// Runs `work` on a thread of its own and returns its value. Returns the value of `instead` after `limit`, or at
    /// once if there is no room for a thread.
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
            let isRunning = Threads.detach {
                answer.give(work())
                timer.cancel()
            }
            if !isRunning { answer.give(instead()) }
        }
    }

    private final class Answer<T: Sendable>: Sendable {
        let give: @Sendable (T) -> Void

        init(_ give: @escaping @Sendable (T) -> Void) { self.give = give }
    }
}
