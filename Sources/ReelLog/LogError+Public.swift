import ReelCore

extension LogError {
    /// The sentence for clients. It contains no path, address or error number; `message` is for the operator.
    public var publicMessage: String {
        switch code {
        case .logUnavailable, .forbidden: "the log cannot be reached or written now"
        case .damaged: "a record of the log cannot be read"
        case .internal: "the node has met a fault of its own"
        default: message
        }
    }
}
