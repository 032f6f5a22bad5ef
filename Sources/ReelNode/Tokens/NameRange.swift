package import ReelCore

/// A range of stream names in name order: all names that begin with a prefix, or one name.
package struct NameRange: Equatable, Sendable {
    /// The prefix, or the name.
    package let text: String
    /// True if the range has all names that begin with `text`; false if only `text` itself.
    package let isPrefix: Bool

    /// A range of all names that begin with `prefix`.
    package init(prefix: String) { (text, isPrefix) = (prefix, true) }

    /// A range of one name.
    package init(name: StreamName) { (text, isPrefix) = (name.description, false) }

    /// The first text in the range.
    package var lower: String { text }

    /// The first text after all names of the range: no name contains either of these two characters.
    package var upper: String { text + (isPrefix ? "\u{7F}" : " ") }

    /// The last text that can be a name in the range: `~` is the last of the characters that names may contain.
    package var last: String {
        isPrefix ? text + String(repeating: "~", count: max(0, StreamName.largest - text.utf8.count)) : text
    }

    /// Returns the names of the range that begin with `prefix`; nil: there is none.
    package func intersection(withPrefix prefix: String) -> NameRange? {
        if text.utf8.starts(with: prefix.utf8) { return self }
        return isPrefix && prefix.utf8.starts(with: text.utf8) ? NameRange(prefix: prefix) : nil
    }

    /// Returns the ranges in name order, without those that another range includes.
    package static func disjoint(_ ranges: [NameRange]) -> [NameRange] {
        var kept: [NameRange] = []
        for range in ranges.sorted(by: { ($0.text, $1.isPrefix ? 1 : 0) < ($1.text, $0.isPrefix ? 1 : 0) }) {
            if let last = kept.last, last == range || last.isPrefix && range.text.utf8.starts(with: last.text.utf8) {
                continue
            }
            kept.append(range)
        }
        return kept
    }
}

extension StreamPattern {
    /// The names that the pattern matches.
    var range: NameRange? {
        if description.utf8.last == UInt8(ascii: "*") { return NameRange(prefix: String(description.dropLast())) }
        return StreamName(description).map { NameRange(name: $0) }
    }
}
