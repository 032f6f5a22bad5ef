public import ReelCore

/// Why a log could not do what it was asked for.
public struct LogError: Error, Equatable, Sendable, CustomStringConvertible {
    /// `log_unavailable`, `truncated`, `ahead_of_log`, `diverged`, `epoch_changed`, `conflict`, `too_large`,
    /// `damaged` (also: a file of another kind), `forbidden` (a right that the brokers do not give), `bad_request`
    /// (another number of partitions than the log's), `internal`.
    public var code: ErrorCode
    /// What was found, what was expected, what to do.
    public var message: String
    /// With `truncated` the first seq that can be read, with `ahead_of_log` the last, with `diverged` the last that
    /// agreed.
    public var seq: Seq?
    /// Whether it stays so until somebody puts it right: a file or folder is missing, or not this user's to open.
    public var isLasting = false

    /// An error of this code.
    public init(_ code: ErrorCode, _ message: String, seq: Seq? = nil) {
        self.code = code
        self.message = message
        self.seq = seq
    }

    /// Code and message.
    public var description: String { "\(code.rawValue): \(message)" }
}
