internal import ReelClient

/// A content that a draft edits: a text or bytes. Places count units, which are the bytes of UTF-8 for a text.
protocol DraftContent: Sendable {
    /// Creates the empty content.
    init()

    /// Creates the content of a stored field; nil: the field is absent.
    init(stored: JSONValue?) throws(FieldValueError)

    /// The number of units.
    var unitCount: Int { get }
    /// The text that stands for the content in the stream.
    var wireText: String { get }

    /// Returns the units in a range that splits no scalar.
    func part(_ range: Range<Int>) -> Self

    /// Replaces the units in a range that splits no scalar.
    mutating func replaceUnits(_ range: Range<Int>, with new: Self)

    /// Adds units at the end.
    mutating func append(contentsOf other: Self)

    /// Returns the number of Unicode scalars that stand for the units in a range in the stream.
    func scalarCount(_ range: Range<Int>) -> Int

    /// Returns a place at which the content may be cut, at or shortly before a place; the first one if there is none
    /// before it.
    func border(near place: Int) -> Int

    /// Returns the places at which two contents may be compared: the start of each element in a range, and its end.
    func borders(in range: Range<Int>) -> [Int]

    /// Calls `body` with the units.
    func withUnits<R>(_ body: (UnsafeBufferPointer<UInt8>) -> R) -> R

    /// Returns the smallest replacement between two contents that splits no element of either; nil if they are equal.
    static func replacement(from old: Self, to new: Self) -> Replacement?

    /// Returns the replacement that covers whole elements of this content.
    func fitted(_ hunk: Patch<Self>.Hunk) -> Patch<Self>.Hunk
}

extension DraftContent {
    /// Returns the splices that perform a patch on this content. Each one counts the result of those before it.
    func splices(_ patch: Patch<Self>) -> [TextSplice] {
        var (splices, place, offset) = ([TextSplice](), 0, 0)
        for hunk in patch.hunks {
            offset += scalarCount(place..<hunk.start)
            place = hunk.end
            let text = hunk.inserted.wireText
            let removed = scalarCount(hunk.start..<hunk.end)
            splices.append(TextSplice(at: offset, removing: removed, inserting: text))
            offset += text.unicodeScalars.count
        }
        return splices
    }
}

extension [UInt8]: DraftContent {
    init(stored: JSONValue?) throws(FieldValueError) { self = try stored.map(ByteDifference.bytes) ?? [] }

    var unitCount: Int { count }
    var wireText: String { ByteDifference.text(of: self) }

    func part(_ range: Range<Int>) -> [UInt8] { Array(self[range]) }

    mutating func replaceUnits(_ range: Range<Int>, with new: [UInt8]) { replaceSubrange(range, with: new) }

    func scalarCount(_ range: Range<Int>) -> Int { range.count }

    func border(near place: Int) -> Int { Swift.max(1, place) }

    func borders(in range: Range<Int>) -> [Int] { Array<Int>(range.lowerBound...range.upperBound) }

    func withUnits<R>(_ body: (UnsafeBufferPointer<UInt8>) -> R) -> R { withUnsafeBufferPointer(body) }

    static func replacement(from old: [UInt8], to new: [UInt8]) -> Replacement? {
        old.withUnits { old in new.withUnits { Replacement.between(old, $0) } }
    }

    func fitted(_ hunk: Patch<[UInt8]>.Hunk) -> Patch<[UInt8]>.Hunk { hunk }
}

extension String: DraftContent {
    init(stored: JSONValue?) throws(FieldValueError) {
        self = ""
        guard let stored else { return }
        guard let text = stored.string else { throw FieldValueError(found: stored.excerpt, expected: "a text") }
        self = text
        makeContiguousUTF8()
    }

    var unitCount: Int { utf8.count }
    var wireText: String { self }

    /// Returns the index of a place in the UTF-8 of the text.
    func index(ofUnit place: Int) -> Index { utf8.index(startIndex, offsetBy: place) }

    func part(_ range: Range<Int>) -> String {
        String(unicodeScalars[index(ofUnit: range.lowerBound)..<index(ofUnit: range.upperBound)])
    }

    mutating func replaceUnits(_ range: Range<Int>, with new: String) {
        let indices = index(ofUnit: range.lowerBound)..<index(ofUnit: range.upperBound)
        unicodeScalars.replaceSubrange(indices, with: new.unicodeScalars)
    }

    func scalarCount(_ range: Range<Int>) -> Int {
        unicodeScalars.distance(from: index(ofUnit: range.lowerBound), to: index(ofUnit: range.upperBound))
    }

    func border(near place: Int) -> Int {
        let border = clusterOffset(notAfter: place)
        return border > 0 ? border : clusterOffset(notBefore: Swift.max(1, place))
    }

    func borders(in range: Range<Int>) -> [Int] {
        var (borders, index) = ([Int](), index(ofUnit: range.lowerBound))
        let end = self.index(ofUnit: range.upperBound)
        while index < end {
            borders.append(utf8.distance(from: startIndex, to: index))
            index = self.index(after: index)
        }
        borders.append(range.upperBound)
        return borders
    }

    func withUnits<R>(_ body: (UnsafeBufferPointer<UInt8>) -> R) -> R {
        var text = self
        return text.withUTF8(body)
    }

    static func replacement(from old: String, to new: String) -> Replacement? {
        TextDifference.changedBytes(from: old, to: new)
    }

    func fitted(_ hunk: Patch<String>.Hunk) -> Patch<String>.Hunk {
        // A cluster that another writer has made across an end of the edit stays, as in `TextDifference`.
        let start = clusterOffset(notBefore: hunk.start)
        let end = hunk.removed == 0 ? start : Swift.max(start, clusterOffset(notAfter: hunk.end))
        return Patch<String>.Hunk(start: start, removed: end - start, inserted: hunk.inserted)
    }
}
