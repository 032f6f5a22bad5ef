public import ReelCore

/// Why a snapshot node could not do what it was asked for.
public struct SnapshotError: Error, Equatable, Sendable {
    /// `truncated`, `epoch_changed`, `node_behind`, `not_found`, `deleted`, `overloaded`, `internal`.
    public var code: ErrorCode
    /// What was found, what was expected, what to do.
    public var message: String

    /// An error of this code.
    public init(_ code: ErrorCode, _ message: String) {
        self.code = code
        self.message = message
    }
}
