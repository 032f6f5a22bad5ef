public import ReelCore
internal import ReelLog

/// Why a snapshot node could not do what it was asked for.
public struct SnapshotError: Error, Equatable, Sendable {
    /// `truncated`, `epoch_changed`, `node_behind`, `not_found`, `deleted`, `overloaded`, `internal`.
    public var code: ErrorCode
    /// What was found, what was expected, what to do. For the operator: it may name files, addresses and error numbers.
    public var message: String
    private let told: String?

    /// An error of this code. `told`: the sentence for clients, where `message` is for operators alone.
    public init(_ code: ErrorCode, _ message: String, told: String? = nil) {
        self.code = code
        self.message = message
        self.told = told
    }

    /// The same error of a log.
    init(_ error: LogError) { self.init(error.code, error.message, told: error.publicMessage) }

    /// The sentence for clients. It contains no path, address or error number.
    public var publicMessage: String {
        told ?? (code == .internal ? "the node has met a fault of its own" : message)
    }
}
