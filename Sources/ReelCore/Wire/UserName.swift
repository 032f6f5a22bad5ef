/// The rule for the name of a user: the `sub` of a token, and so the `by` of an event.
package enum UserName {
    /// The rule in words.
    package static let rule = "1 to \(Limits.name) bytes without control characters"

    /// True for a name that the rule permits.
    package static func isValid(_ text: String) -> Bool {
        (1...Limits.name).contains(text.utf8.count) && text.utf8.allSatisfy { $0 >= 0x20 }
    }
}
