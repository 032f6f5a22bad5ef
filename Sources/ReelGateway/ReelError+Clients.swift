import ReelCore
import ReelLog

extension ReelError {
    /// The same error with the log's public message, which clients may see.
    var forClients: ReelError {
        var error = self
        error.message = LogError(code, message).publicMessage
        return error
    }

    /// The error for a client after its token has expired.
    static let tokenExpired = ReelError(.unauthorized, "the token has expired")

    /// Returns the error for a log that has ended; `next` is the epoch that follows.
    static func ended(_ next: Epoch) -> ReelError {
        ReelError(.epochChanged, "this log's epoch has ended, the next one is \(next)")
    }
}
