import ReelCore

extension LogError {
    /// What clients are told: no path, address or error number of the node's machine. `message` is for the operator.
    public var publicMessage: String {
        switch code {
        case .logUnavailable, .forbidden: "the log cannot be reached or written now"
        case .damaged: "a record of the log cannot be read"
        case .internal: "the node has met a fault of its own"
        default: message
        }
    }
}
