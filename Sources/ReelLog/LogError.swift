public import ReelCore

/// An error of a log.
public struct LogError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The error code. One of:
    ///
    /// - `log_unavailable`, `truncated`, `ahead_of_log`, `diverged`, `epoch_changed`, `conflict`, `too_large`,
    ///   `internal`
    /// - `damaged`: also a file of another kind
    /// - `forbidden`: a right that the brokers do not grant
    /// - `bad_request`: another number of partitions than the log's
    public var code: ErrorCode
    /// The message: what was found, what was expected, and what to do.
    public var message: String
    /// A seq that depends on the code: with `truncated` the first seq that can be read, with `ahead_of_log` the last
    /// one, with `diverged` the last one that agreed, if it is known.
    public var seq: Seq?
    /// True if a retry cannot succeed before an operator fixes the cause: a file or folder is missing, or this user has
    /// no right to open it.
    public var isLasting = false

    /// Creates an error of this code.
    public init(_ code: ErrorCode, _ message: String, seq: Seq? = nil) {
        self.code = code
        self.message = message
        self.seq = seq
    }

    /// The code and the message.
    public var description: String { "\(code.rawValue): \(message)" }
}
