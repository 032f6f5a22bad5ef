/// The reason for which a message is refused before it reaches a route. The connection ends with the response.
public struct HTTPViolation: Error, Hashable, Sendable {
    /// The status of the response: 400, 408, 413, 414, 417, 426, 431, 501, 503 or 505.
    public let status: Int
    /// A text for people: what was found and what was expected.
    public let detail: String

    /// Creates a refusal.
    ///
    /// - Parameters:
    ///   - status: The status of the response.
    ///   - detail: What was found and what was expected.
    public init(_ status: Int, _ detail: String) {
        self.status = status
        self.detail = detail
    }
}

/// The limits on one HTTP message, in bytes unless noted otherwise.
public struct HTTPLimits: Hashable, Sendable {
    /// The maximum size of the request line; a longer one gets 414.
    public var line = 8 << 10
    /// The maximum size of the head; a longer one gets 431.
    public var head = 16 << 10
    /// The maximum number of header fields; more get 431.
    public var fields = 100
    /// The maximum size of the body; a longer one gets 413.
    public var body = 1 << 20
    /// The maximum size of all chunk extensions and trailers of a message; more get 400.
    public var chunkExtras = 4 << 10

    /// Creates the limits of a server of small messages.
    public init() {}
}
