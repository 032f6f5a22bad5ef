/// A wait for the lock of a log's file that takes long.
public struct LockWait: Hashable, Sendable {
    /// The lock's file.
    public let file: String
    /// How long the wait has lasted.
    public let waited: Duration
    /// True if the wait has ended, because the lock is held here now.
    public let isOver: Bool

    /// A wait for this file.
    public init(file: String, waited: Duration, isOver: Bool) {
        self.file = file
        self.waited = waited
        self.isOver = isOver
    }

    /// A wait that takes less is not reported.
    public static let reported = Duration.seconds(1)
}

/// Takes the reports of a log's lock: one when a wait has taken a second, and one when that wait ends. Called on any
/// thread.
public typealias LockWaitReport = @Sendable (LockWait) -> Void
