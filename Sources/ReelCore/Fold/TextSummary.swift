/// What a subtree of a text says without being entered.
struct TextSummary: Sendable {
    /// Elements that nobody has deleted.
    var scalars: Int32 = 0
    /// Bytes of their escaped text.
    var bytes: Int32 = 0
    /// The newest insertion or deletion.
    var newest = TextMark.ancient
    /// The newest one of all other sites.
    var newestOther = TextMark.ancient
    /// The seq of the oldest insertion or deletion that still counts as history.
    var oldest = Seq.max
    /// What a viewer counted, who looked into it last: an event of many splices asks again and again.
    private var counted: (by: TextViewer, scalars: Int32)?

    /// How many elements the viewer counts; nil: the subtree must be looked into.
    @inline(__always)
    func count(for viewer: TextViewer) -> Int? {
        if isSettled(for: viewer) { return Int(scalars) }
        guard let counted, counted.by == viewer else { return nil }
        return Int(counted.scalars)
    }

    mutating func keep(_ count: Int, for viewer: TextViewer) {
        counted = (viewer, Int32(count))
    }

    /// Whether the viewer sees all that was ever done here: then its count is the count of today.
    @inline(__always)
    func isSettled(for viewer: TextViewer) -> Bool {
        (newest.site == viewer.site ? newestOther.seq : newest.seq) <= viewer.base
    }

    @inline(__always)
    mutating func add(_ mark: TextMark) {
        guard mark.seq > .none else { return }
        if mark.seq < oldest { oldest = mark.seq }
        note(mark)
    }

    /// Keeps the two newest marks of distinct sites.
    @inline(__always)
    private mutating func note(_ mark: TextMark) {
        if mark.site == newest.site {
            if mark.seq > newest.seq { newest.seq = mark.seq }
        } else if mark.seq > newest.seq {
            newestOther = newest
            newest = mark
        } else if mark.seq > newestOther.seq {
            newestOther = mark
        }
    }

    @inline(__always)
    mutating func add(_ run: borrowing TextRun) {
        add(run.inserted)
        if run.isDeleted {
            add(run.deleted)
            for mark in run.deletedAgain { add(mark) }
        } else {
            scalars += run.scalars
            bytes += run.bytes
        }
    }

    @inline(__always)
    mutating func add(_ other: borrowing TextSummary) {
        scalars += other.scalars
        bytes += other.bytes
        if other.oldest < oldest { oldest = other.oldest }
        note(other.newest)
        note(other.newestOther)
    }
}
