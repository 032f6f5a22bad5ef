/// The first place at which two texts differ.
public struct TextDifference: Equatable, Sendable {
    /// The number of Unicode scalars that both texts begin with.
    public let offset: Int
    /// The found text at that place, shortened.
    public let found: String
    /// The expected text at that place, shortened.
    public let expected: String
    /// The number of Unicode scalars of the found text.
    public let foundCount: Int
    /// The number of Unicode scalars of the expected text.
    public let expectedCount: Int

    /// The number of Unicode scalars of each text that are kept.
    private static let shownScalars = 30

    /// Compares two texts; nil if they are equal, scalar by scalar.
    public init?(found: String, expected: String) {
        let (own, other) = (Array(found.unicodeScalars), Array(expected.unicodeScalars))
        guard own != other else { return nil }
        offset = zip(own, other).enumerated().first { $1.0 != $1.1 }?.offset ?? min(own.count, other.count)
        self.found = Self.shown(own[offset...])
        self.expected = Self.shown(other[offset...])
        (foundCount, expectedCount) = (own.count, other.count)
    }

    private static func shown(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
        guard !scalars.isEmpty else { return "the end" }
        var text = ""
        text.unicodeScalars.append(contentsOf: scalars.prefix(shownScalars))
        return text.debugDescription + (scalars.count > shownScalars ? "…" : "")
    }
}

extension TextDifference: CustomStringConvertible {
    /// The difference as a sentence, without a full stop.
    public var description: String {
        "the texts first differ after \(offset) scalars: found \(found), expected \(expected)"
            + " (\(foundCount) scalars, expected \(expectedCount))"
    }
}
