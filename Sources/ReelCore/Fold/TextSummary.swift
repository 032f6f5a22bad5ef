/// The properties of a subtree of a text that are known without a search in it.
struct TextSummary: Sendable {
    /// The number of elements that are not deleted.
    var scalars: Int32 = 0
    /// The number of bytes of their escaped text.
    var bytes: Int32 = 0
    /// The newest insertion or deletion.
    var newest = TextMark.ancient
    /// The newest insertion or deletion of all other sites.
    var newestOther = TextMark.ancient
    /// The seq of the oldest insertion or deletion that is still history.
    var oldest = Seq.max
    /// The cached count of the viewer that searched the subtree last. An event with many splices asks for it
    /// repeatedly.
    private var counted: (by: TextViewer, scalars: Int32)?

    /// Returns the number of elements that `viewer` counts; nil if the subtree must be searched.
    @inline(__always)
    func count(for viewer: TextViewer) -> Int? {
        if isSettled(for: viewer) { return Int(scalars) }
        guard let counted, counted.by == viewer else { return nil }
        return Int(counted.scalars)
    }

    mutating func keep(_ count: Int, for viewer: TextViewer) {
        counted = (viewer, Int32(count))
    }

    /// True if the viewer has seen all changes in this subtree. It then counts the elements that are not deleted.
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
