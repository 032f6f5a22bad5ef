/// The seq and the site of a change of a text.
struct TextMark: Equatable, Sendable {
    var seq: Seq
    var site: Site

    /// The mark of a change at or below the horizon. Every author that may still splice sees it, independent of the
    /// site.
    static let ancient = nobody(at: .none)

    /// Returns the mark of a change at `seq` that has no author. Only a viewer with a base at or above `seq` sees it.
    static func nobody(at seq: Seq) -> TextMark { TextMark(seq: seq, site: .nobody) }
}

/// The view that the author of one event had of a text. It sees all changes up to `base`, and all changes of its own
/// site.
struct TextViewer: Equatable {
    var site: Site
    var base: Seq

    @inline(__always)
    func sees(_ mark: TextMark) -> Bool {
        mark.seq <= base || mark.site == site
    }
}

/// Adjacent elements (Unicode scalars) of a text that were inserted by the same event and deleted by the same events.
struct TextRun: Sendable {
    var inserted: TextMark
    /// The number of bytes of escaped text.
    var bytes: Int32
    /// The number of elements.
    var scalars: Int32
    /// The first deletion; without meaning while `isDeleted` is false.
    private(set) var deleted = TextMark.ancient
    private(set) var isDeleted = false
    /// Further deletions by authors that had not seen an earlier one, ordered by seq. Each site occurs at most once.
    private(set) var deletedAgain: [TextMark] = []

    init(inserted: TextMark, bytes: Int, scalars: Int) {
        self.inserted = inserted
        self.bytes = Int32(bytes)
        self.scalars = Int32(scalars)
    }

    /// The marks of all deletions, ordered by seq.
    var deleters: [TextMark] {
        isDeleted ? [deleted] + deletedAgain : []
    }

    /// Adds a deletion. Returns the increase of the run's weight.
    @discardableResult
    mutating func delete(by mark: TextMark) -> Int {
        let before = weight
        if isDeleted {
            deletedAgain.append(mark)
        } else {
            deleted = mark
            isDeleted = true
        }
        return weight - before
    }

    /// The weight of the run's deleted elements, see `Limits.history`: for each element, the square of the number of
    /// its deleters. The number of deleters is capped at the value at which one element alone exceeds the limit. Only a
    /// damaged or forged snapshot has more.
    var weight: Int {
        guard isDeleted else { return 0 }
        let deleters = min(1 + deletedAgain.count, Limits.history >> 8)
        return Int(scalars) * deleters * deleters
    }

    /// True if an offset of this viewer counts these elements.
    @inline(__always)
    func counts(for viewer: TextViewer) -> Bool {
        guard viewer.sees(inserted) else { return false }
        guard isDeleted else { return true }
        return !viewer.sees(deleted) && !deletedAgain.contains(where: viewer.sees)
    }

    /// True if these elements differ from those of the other run only in their text.
    func hasHistory(of other: TextRun) -> Bool {
        inserted == other.inserted && isDeleted == other.isDeleted && deleted == other.deleted
            && deletedAgain == other.deletedAgain
    }

    /// Returns the run without history at or below the horizon; nil if its deletion is at or below the horizon.
    func settled(below horizon: Seq) -> TextRun? {
        if isDeleted && deleted.seq <= horizon { return nil }
        guard inserted.seq <= horizon else { return self }
        var run = self
        run.inserted = .ancient
        return run
    }
}

/// Helpers for the escaped text of a JSON string, counted in Unicode scalars. The text is valid and canonical. An
/// escape is therefore one scalar of two bytes, or of six for `\u00…`.
enum EscapedText {
    /// Returns the number of bytes of the scalar that begins with these bytes. `second` matters only after a backslash.
    @inline(__always)
    static func length(_ first: UInt8, _ second: UInt8) -> Int {
        if first == ASCII.backslash { return second == UInt8(ascii: "u") ? 6 : 2 }
        if first < 0x80 { return 1 }
        return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
    }

    /// Returns the number of bytes of the first `scalars` scalars from `start`.
    static func bytes(of scalars: Int, in text: Bytes, from start: Int) -> Int {
        var at = start
        for _ in 0..<scalars {
            at += length(text[at], at + 1 < text.count ? text[at + 1] : 0)
        }
        return at - start
    }

    /// Returns the longest prefix of whole scalars with at most `limit` bytes, as its bytes and its scalars. `limit` is
    /// at least 6.
    static func prefix(
        _ limit: Int,
        in text: Bytes,
        from start: Int,
        to end: Int
    ) -> (bytes: Int, scalars: Int) {
        var at = start
        var scalars = 0
        while at < end {
            let next = at + length(text[at], at + 1 < end ? text[at + 1] : 0)
            if next - start > limit { break }
            at = next
            scalars += 1
        }
        return (at - start, scalars)
    }
}
