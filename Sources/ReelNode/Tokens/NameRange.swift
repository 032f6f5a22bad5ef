package import ReelCore

/// Names of streams that follow each other in name order: all that begin with a prefix, or one name alone.
package struct NameRange: Equatable, Sendable {
    /// The prefix, or the name.
    package let text: String
    /// True if all names that begin with `text` belong to the range; false if only `text` itself does.
    package let isPrefix: Bool

    /// All names that begin with a prefix.
    package init(prefix: String) { (text, isPrefix) = (prefix, true) }

    /// One name.
    package init(name: StreamName) { (text, isPrefix) = (name.description, false) }

    /// The first text that lies in the range.
    package var lower: String { text }

    /// The first text behind all names of the range: no name has one of these two characters.
    package var upper: String { text + (isPrefix ? "\u{7F}" : " ") }

    /// The last text that can be a name of the range: of the characters of names, `~` is the last.
    package var last: String {
        isPrefix ? text + String(repeating: "~", count: max(0, StreamName.largest - text.utf8.count)) : text
    }

    /// The part of the range that begins with a prefix; nil: there is none.
    package func intersection(withPrefix prefix: String) -> NameRange? {
        if text.utf8.starts(with: prefix.utf8) { return self }
        return isPrefix && prefix.utf8.starts(with: text.utf8) ? NameRange(prefix: prefix) : nil
    }

    /// The ranges in name order, without those that another one includes.
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
    /// The names that the pattern speaks of.
    var range: NameRange? {
        if description.utf8.last == UInt8(ascii: "*") { return NameRange(prefix: String(description.dropLast())) }
        return StreamName(description).map { NameRange(name: $0) }
    }
}
