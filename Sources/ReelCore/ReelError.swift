/// What went wrong, for a program (`code`) and for a person (`message`, what was found, what was expected).
public struct ReelError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The stable code; its HTTP status, close code and advice stand in one table, `ErrorCode`.
    public var code: ErrorCode
    /// One sentence that says what was found and what was expected.
    public var message: String
    /// Milliseconds after which the same may be tried again (0: at once); nil: do not.
    public var retryMs: Int64?
    /// The place of the bad event in its request.
    public var index: Int?

    /// `message (code)`.
    public var description: String { "\(message) (\(code.rawValue))" }

    /// An error of this code.
    public init(_ code: ErrorCode, _ message: String, retryMs: Int64? = nil, index: Int? = nil) {
        self.code = code
        self.message = message
        self.retryMs = retryMs
        self.index = index
    }
}
