public import ReelCore

/// Why a log could not do what it was asked for.
public struct LogError: Error, Equatable, Sendable {
    /// `log_unavailable`, `truncated`, `ahead_of_log`, `diverged`, `epoch_changed`, `too_large`, `internal`.
    public var code: ErrorCode
    /// What was found, what was expected, what to do.
    public var message: String

    public init(_ code: ErrorCode, _ message: String) {
        self.code = code
        self.message = message
    }
}
