/// Who did something to a text, and when.
struct TextMark: Equatable, Sendable {
    var seq: Seq
    var site: Site

    /// At or below the horizon: everybody who may still splice sees it, whoever did it.
    static let ancient = nobody(at: .none)

    /// What was done at a seq by no author's hand: nobody sees it but who has seen that seq.
    static func nobody(at seq: Seq) -> TextMark { TextMark(seq: seq, site: .nobody) }
}

/// The eyes of one event: what its author had seen of a text when it was made.
struct TextViewer: Equatable {
    var site: Site
    var base: Seq

    @inline(__always)
    func sees(_ mark: TextMark) -> Bool {
        mark.seq <= base || mark.site == site
    }
}

/// Neighbouring elements (Unicode scalars) of a text that were inserted by the same event and deleted by the same ones.
struct TextRun: Sendable {
    var inserted: TextMark
    /// How many bytes of escaped text.
    var bytes: Int32
    /// How many elements.
    var scalars: Int32
    /// Who deleted it first; meaningless while `isDeleted` is false.
    private(set) var deleted = TextMark.ancient
    private(set) var isDeleted = false
    /// Who deleted it without having seen that, by seq: each site at most once.
    private(set) var deletedAgain: [TextMark] = []

    init(inserted: TextMark, bytes: Int, scalars: Int) {
        self.inserted = inserted
        self.bytes = Int32(bytes)
        self.scalars = Int32(scalars)
    }

    /// Everybody who deleted it, by seq.
    var deleters: [TextMark] {
        isDeleted ? [deleted] + deletedAgain : []
    }

    /// The result is what the run's weight grows by.
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

    /// The weight of the run's deleted elements, see `Limits.history`: for each the square of the number of its
    /// deleters. The number of deleters is capped where one element alone passes the limit; only a damaged or forged
    /// snapshot has more.
    var weight: Int {
        guard isDeleted else { return 0 }
        let deleters = min(1 + deletedAgain.count, Limits.history >> 8)
        return Int(scalars) * deleters * deleters
    }

    /// Whether an offset of this viewer counts these elements.
    @inline(__always)
    func counts(for viewer: TextViewer) -> Bool {
        guard viewer.sees(inserted) else { return false }
        guard isDeleted else { return true }
        return !viewer.sees(deleted) && !deletedAgain.contains(where: viewer.sees)
    }

    /// Whether nobody can tell these elements from the other run's, but by their text.
    func hasHistory(of other: TextRun) -> Bool {
        inserted == other.inserted && isDeleted == other.isDeleted && deleted == other.deleted
            && deletedAgain == other.deletedAgain
    }

    /// The run without what everybody sees by now; nil: everybody sees it deleted.
    func settled(below horizon: Seq) -> TextRun? {
        if isDeleted && deleted.seq <= horizon { return nil }
        guard inserted.seq <= horizon else { return self }
        var run = self
        run.inserted = .ancient
        return run
    }
}

/// The escaped text of a JSON string, counted in Unicode scalars. It is valid and canonical, so an escape is one
/// scalar: two bytes, or six for `\u00…`.
enum EscapedText {
    /// How many bytes the scalar has that begins with these bytes; `second` matters only behind a backslash.
    @inline(__always)
    static func length(_ first: UInt8, _ second: UInt8) -> Int {
        if first == ASCII.backslash { return second == UInt8(ascii: "u") ? 6 : 2 }
        if first < 0x80 { return 1 }
        return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
    }

    /// How many bytes the first `scalars` scalars from `start` on have.
    static func bytes(of scalars: Int, in text: Bytes, from start: Int) -> Int {
        var at = start
        for _ in 0..<scalars {
            at += length(text[at], at + 1 < text.count ? text[at + 1] : 0)
        }
        return at - start
    }

    /// The longest beginning of whole scalars with at most `limit` bytes (at least 6): its bytes and its scalars.
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
