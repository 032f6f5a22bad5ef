internal import Glibc
internal import ReelLog

extension LogThread {
    /// Runs `body` on a thread of its own that nobody waits for.
    static func detach(_ name: String, _ body: @escaping @Sendable () -> Void) throws(LogError) {
        _ = try LogThread(name) {
            pthread_detach(pthread_self())
            body()
        }
    }
}
