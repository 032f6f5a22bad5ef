public import Foundation
public import ReelClient
public import ReelCore

// Alerts and logs of Foundation show these texts. Without them they say "The operation could not be completed".

extension ReelError: LocalizedError {
    /// The sentence that says what was found and what was expected.
    public var errorDescription: String? { message }
    /// The title of the error's code.
    public var failureReason: String? { code.entry.title }
    /// The advice for the error's code.
    public var recoverySuggestion: String? { code.entry.advice }
}

extension FlushTimeout: LocalizedError {
    /// The number of events that wait, and the first of them with its reason.
    public var errorDescription: String? { description }
}

extension WithdrawalRefused: LocalizedError {
    /// The reason why the event cannot be withdrawn.
    public var errorDescription: String? { description }
}
