/// Why a message is refused before any route sees it. The connection ends with the answer.
public struct HTTPViolation: Error, Hashable, Sendable {
    /// The status to answer: 400, 408, 413, 414, 417, 431, 501, 503 or 505.
    public let status: Int
    /// What was found and what was expected.
    public let detail: String

    /// A refusal with this status.
    public init(_ status: Int, _ detail: String) {
        self.status = status
        self.detail = detail
    }
}

/// Bounds on what one HTTP message may take, in bytes unless it says something else.
public struct HTTPLimits: Hashable, Sendable {
    /// The request line; longer: 414.
    public var line = 8 << 10
    /// The whole head; longer: 431.
    public var head = 16 << 10
    /// How many header fields; more: 431.
    public var fields = 100
    /// The body; longer: 413.
    public var body = 1 << 20
    /// All chunk extensions and trailers of a message; more: 400.
    public var chunkExtras = 4 << 10

    /// The bounds of a server of small messages.
    public init() {}
}
