/// The rule for the name of a user, which is the `sub` of a token and the `by` of an event.
package enum UserName {
    /// The rule as text.
    package static let rule = "1 to \(Limits.name) bytes without control characters"

    /// True for a name that the rule permits.
    package static func isValid(_ text: String) -> Bool {
        (1...Limits.name).contains(text.utf8.count) && text.utf8.allSatisfy { $0 >= 0x20 }
    }
}
