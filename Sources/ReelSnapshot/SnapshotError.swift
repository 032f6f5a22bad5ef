public import ReelCore
internal import ReelLog

/// An error of a snapshot node.
public struct SnapshotError: Error, Equatable, Sendable {
    /// `truncated`, `epoch_changed`, `node_behind`, `not_found`, `deleted`, `overloaded`, `internal`; of a log also the
    /// code of the `LogError`; of an archive `bad_request` and `damaged`.
    public var code: ErrorCode
    /// The finding, the expectation and the remedy, for the operator: it may name files, addresses and error numbers.
    public var message: String
    private let clientMessage: String?

    /// An error of this code.
    ///
    /// - Parameters:
    ///   - code: The code.
    ///   - message: The finding, the expectation and the remedy, for the operator.
    ///   - told: The sentence for clients if `message` is for operators alone; nil: clients get `message`, or a general
    ///     sentence for `internal`.
    public init(_ code: ErrorCode, _ message: String, told: String? = nil) {
        self.code = code
        self.message = message
        clientMessage = told
    }

    /// The error of a log as an error of the node.
    init(_ error: LogError) { self.init(error.code, error.message, told: error.publicMessage) }

    /// The sentence for clients. It contains no path, address or error number.
    public var publicMessage: String {
        clientMessage ?? (code == .internal ? "the node has an internal error" : message)
    }
}
