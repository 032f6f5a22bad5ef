internal import CLinux
internal import Glibc
internal import ReelCore

/// A thread that runs one function to its end. Logs use it, and code that folds a log.
public final class LogThread: @unchecked Sendable {
    private let thread: pthread_t

    /// Starts the thread. `name` has at most 15 bytes; `top -H` shows it.
    public init(_ name: String, _ body: @escaping @Sendable () -> Void) throws(LogError) {
        var thread = pthread_t()
        let start = Unmanaged.passRetained(Start(name: name, body: body))
        let result = pthread_create(&thread, nil, Start.run, start.toOpaque())
        guard result == 0 else {
            start.release()
            throw LogError(errno: result, "start a thread")
        }
        self.thread = thread
    }

    /// Runs `body` on a new thread that no caller joins.
    public static func detach(_ name: String, _ body: @escaping @Sendable () -> Void) throws(LogError) {
        _ = try LogThread(name) {
            pthread_detach(pthread_self())
            body()
        }
    }

    /// Waits until the thread has ended. Call it once, from another thread.
    public func join() {
        pthread_join(thread, nil)
    }

    /// True if the caller runs on this thread.
    public var isCurrent: Bool { pthread_equal(thread, pthread_self()) != 0 }

    private final class Start {
        let name: String
        let body: @Sendable () -> Void

        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }

        static let run: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
            guard let context else { return nil }
            let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
            _ = reel_name_thread(start.name)
            start.body()
            return nil
        }
    }
}
