/// How the log does, as a node sees it, in the word of `/readyz`, frames and metrics; each hides those before it.
public enum LogState: String, CaseIterable, Comparable, Sendable {
    case ok
    /// The oldest publish waits for long, or the last write failed.
    case degraded
    /// The oldest publish waits for so long that no new ones are taken, writes fail for as long, or a partition of the
    /// log cannot be read.
    case unavailable
    /// It was trimmed beyond what a snapshot node has folded. A gateway goes on behind what is gone.
    case truncated
    /// The epoch is over: what is published now belongs into the next. Reading goes on.
    case ended
    /// It holds less than was read of it before: nothing is served.
    case aheadOfLog = "ahead_of_log"
    /// It is not what was read before: nothing is served.
    case diverged

    /// Whether `b` hides `a`.
    public static func < (a: LogState, b: LogState) -> Bool { a.order < b.order }

    private var order: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}
