/// The bytes that a view shows.
struct ByteView: DraftView {
    private(set) var bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var end: Int { bytes.count }

    /// Performs an own edit. Nil if the range is not in the bytes.
    mutating func replace(_ range: Range<Int>, with new: [UInt8]) -> Patch<[UInt8]>.Hunk? {
        guard range.lowerBound >= 0, range.upperBound <= bytes.count else { return nil }
        bytes.replaceSubrange(range, with: new)
        return Patch.Hunk(start: range.lowerBound, removed: range.count, inserted: new)
    }

    mutating func perform(_ hunk: Patch<[UInt8]>.Hunk) -> BytesDraft.Change {
        bytes.replaceSubrange(hunk.start..<hunk.end, with: hunk.inserted)
        return BytesDraft.Change(range: hunk.start..<hunk.end, bytes: hunk.inserted)
    }
}
