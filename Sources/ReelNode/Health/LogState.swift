/// The state of the log as a node sees it. The raw value is the word in `/readyz`, frames and metrics. A later case
/// takes precedence over the earlier ones.
public enum LogState: String, CaseIterable, Comparable, Sendable {
    case ok
    /// The oldest publish has been waiting for long, or the last write failed.
    case degraded
    /// The oldest publish has waited up to the limit at which the gateway accepts no new ones, or writes have failed
    /// for that time. Also if a partition of the log cannot be read.
    case unavailable
    /// The log was trimmed beyond the records that a snapshot node has folded. A gateway continues after the trimmed
    /// records.
    case truncated
    /// The epoch has ended: new events belong to the next one. Reading continues.
    case ended
    /// The log holds fewer records than were read from it before: nothing is served.
    case aheadOfLog = "ahead_of_log"
    /// The log contradicts the records that were read before: nothing is served.
    case diverged

    /// Returns true if `b` takes precedence over `a`.
    public static func < (a: LogState, b: LogState) -> Bool { a.order < b.order }

    private var order: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}
