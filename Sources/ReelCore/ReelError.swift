/// An error for programs (`code`) and for people (`message`: what was found, and what was expected).
public struct ReelError: Error, Sendable, Hashable, Codable, CustomStringConvertible {
    /// The stable code. Its HTTP status, close code and advice are in the table of `ErrorCode`.
    public var code: ErrorCode
    /// One sentence that says what was found and what was expected.
    public var message: String
    /// The time in milliseconds after which the request may be tried again; 0 means at once. Nil: do not try again.
    public var retryMs: Int64?
    /// The index of the bad event in its request.
    public var index: Int?

    /// The text `message (code)`.
    public var description: String { "\(message) (\(code.rawValue))" }

    /// Creates an error with this code.
    public init(_ code: ErrorCode, _ message: String, retryMs: Int64? = nil, index: Int? = nil) {
        self.code = code
        self.message = message
        self.retryMs = retryMs
        self.index = index
    }
}
