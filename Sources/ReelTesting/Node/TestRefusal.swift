internal import ReelCore

/// The requests that a node refuses.
public enum TestRequests: String, Sendable, CaseIterable {
    /// Events that a device sends.
    case writes
    /// Subscriptions, snapshots, deltas and other requests for content.
    case reads
    /// Connections and new tokens.
    case connections
}

/// A rule by which the node answers requests with an error.
struct TestRefusal: Sendable {
    let number: Int
    let requests: TestRequests
    let code: ErrorCode
    /// The device whose requests are refused; nil: all devices.
    let device: String?

    /// True if a device repeats the request after a pause. It repeats others with another token, or on another
    /// connection.
    var isTemporary: Bool { code.entry.retry == .later }

    var error: ReelError {
        let whose = device.map { "of \($0)" } ?? "of all devices"
        let message = "the test makes the node refuse \(requests.rawValue) \(whose)"
        return ReelError(code, message, retryMs: isTemporary ? 1_000 : nil)
    }

    func concerns(_ device: String) -> Bool { self.device == nil || self.device == device }
}
