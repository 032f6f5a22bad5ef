internal import Foundation

/// The errors of a session.
enum SessionError {
    /// Returns the text of an error with its number, because the text may be in the language of the device.
    static func text(_ error: any Error) -> String {
        let error = error as NSError
        return "\(error.localizedDescription) (\(error.domain) \(error.code))"
    }
}
