import TestSupport

/// Random texts and edits with clusters of several scalars.
enum DraftText {
    private static let parts = [
        "a", "b ", "é", "e\u{301}", "\u{301}", "😀", "👨‍👩‍👧", "🇩🇪", "🇩", "\r\n", "\n", "\r", "\u{200D}", "字", "각", "\u{11A8}",
    ]

    /// Returns a text of up to `count` parts.
    static func random(_ random: inout SeededNumbers, _ count: Int) -> String {
        (0..<random.below(count)).map { _ in random.pick(parts) }.joined()
    }

    /// Returns a random edit of a text: a range in UTF-16 that splits no scalar but may split a cluster, and what
    /// replaces it.
    static func edit(of text: String, _ random: inout SeededNumbers) -> (Range<Int>, String) {
        let scalars = text.unicodeScalars
        let start = scalars.index(scalars.startIndex, offsetBy: random.below(scalars.count + 1))
        let end = scalars.index(start, offsetBy: random.below(4), limitedBy: scalars.endIndex) ?? scalars.endIndex
        let range = start.utf16Offset(in: text)..<end.utf16Offset(in: text)
        return (range, DraftText.random(&random, 4))
    }

    /// Makes a random edit.
    static func edit(_ text: inout String, _ random: inout SeededNumbers) {
        let (range, new) = edit(of: text, &random)
        text = replaced(text, range, new)
    }

    /// Returns a text after an edit whose range is in UTF-16.
    static func replaced(_ text: String, _ range: Range<Int>, _ new: String) -> String {
        let units = Array(text.utf16)
        let all = units[..<range.lowerBound] + Array(new.utf16) + units[range.upperBound...]
        return String(decoding: all, as: UTF16.self)
    }

    /// Returns true if a place in the UTF-8 of a text is a border of clusters.
    static func isBorder(_ place: Int, of text: String) -> Bool {
        var borders: Set<Int> = [text.utf8.count]
        for index in text.indices { borders.insert(text.utf8.distance(from: text.startIndex, to: index)) }
        return borders.contains(place)
    }

    /// Returns true if a place in the UTF-16 of a text is a border of clusters.
    static func isUTF16Border(_ place: Int, of text: String) -> Bool {
        var borders: Set<Int> = [text.utf16.count]
        for index in text.indices { borders.insert(index.utf16Offset(in: text)) }
        return borders.contains(place)
    }
}
