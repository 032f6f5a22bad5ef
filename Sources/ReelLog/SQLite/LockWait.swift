/// A long wait for the lock of a log's file.
public struct LockWait: Hashable, Sendable {
    /// The path of the lock file.
    public let file: String
    /// How long the wait has lasted.
    public let waited: Duration
    /// True if the wait has ended because this process now holds the lock.
    public let isOver: Bool

    /// Creates the report of a wait.
    public init(file: String, waited: Duration, isOver: Bool) {
        self.file = file
        self.waited = waited
        self.isOver = isOver
    }

    /// The duration from which a wait is reported.
    public static let reported = Duration.seconds(1)
}

/// Called with the long waits for a log's lock: once when a wait has lasted a second, and once when that wait ends.
/// From any thread.
public typealias LockWaitReport = @Sendable (LockWait) -> Void
