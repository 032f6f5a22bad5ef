/// A text with its edit history. Every element (Unicode scalar) keeps the marks of its insertion and its deletions
/// while splices may still be made by authors that have not seen them. A value: a copy is cheap and shares all
/// unchanged nodes.
///
/// An offset is resolved against the version of the text that its author saw, as in Eg-walker (Gentle and Kleppmann,
/// 2024).
///
/// The text is a B+tree over runs. Each subtree keeps its two newest marks of distinct sites. If a viewer has seen
/// every change in a subtree, its stored count is used. The search enters only subtrees with changes of other sites
/// after the viewer's base. The cost of a splice is the logarithm of the text's length plus the number of such changes.
struct SplicedText: Sendable {
    private final class Tree: @unchecked Sendable {
        var root = TextNode()
        var summary = TextSummary()
        /// An upper bound of the weight of the history.
        var weight = 0
        let written: TextMark?

        init(written: TextMark?) {
            self.written = written
        }
    }

    private var tree: Tree

    /// Creates an empty text that is filled by `append`. `written` is nil for the text of an absent field, which has no
    /// plain write.
    init(written: TextMark?) {
        tree = Tree(written: written)
    }

    /// Creates a text that was written plainly. `text` has the escaped bytes without quotes.
    init(_ text: Bytes, written: TextMark) {
        self.init(written: written)
        append(text, scalars: JSONText(text).scalarCount, inserted: written, deleters: [])
        finishAppending()
    }

    /// The last plain write of the field; nil if the field was absent before its first splice.
    var written: TextMark? { tree.written }
    /// The number of elements that are not deleted.
    var scalars: Int { Int(tree.summary.scalars) }
    /// The number of bytes of their escaped text, without quotes.
    var bytes: Int { Int(tree.summary.bytes) }

    /// An upper bound of the weight of the text's history, see `Limits.history`. Each splice adds the most that it can
    /// add to the weight; `weigh` makes the bound exact.
    var weight: Int { tree.weight }

    /// Makes the weight exact. The exact weight depends on the text's history and not on the shape of the tree. If the
    /// tree holds many runs that the horizon has made equal, the tree is rebuilt without them.
    mutating func weigh(above horizon: Seq) {
        var (weight, runs, held) = (0, 0, 0)
        var last: TextRun?
        tree.root.forEachRun { run, _ in
            held += 1
            guard let run = run.settled(below: horizon) else { return }
            weight += run.weight
            if let last, last.hasHistory(of: run) { return }
            runs += 1
            last = run
        }
        weight += Limits.run * max(0, runs - 1)
        if held > 2 * runs + Self.unsettledRuns {
            self = settled(above: horizon)
        } else {
            own()
        }
        tree.weight = weight
    }

    /// The number of superfluous runs above which `weigh` rebuilds the tree.
    private static let unsettledRuns = 4_096

    /// Returns the same text without history at or below the horizon.
    private func settled(above horizon: Seq) -> SplicedText {
        var text = SplicedText(written: written)
        forEachRun(above: horizon) { run, bytes in
            text.append(bytes, scalars: Int(run.scalars), inserted: run.inserted, deleters: run.deleters)
        }
        text.finishAppending()
        return text
    }

    /// Returns the number of elements that `viewer` counts. The count is cached for the next call with the same viewer.
    mutating func count(for viewer: TextViewer) -> Int {
        if let known = tree.summary.count(for: viewer) { return known }
        own()
        let count = tree.root.count(for: viewer)
        tree.summary.keep(count, for: viewer)
        return count
    }

    /// True if the viewer has seen all changes of the text.
    func isSettled(for viewer: TextViewer) -> Bool { tree.summary.isSettled(for: viewer) }

    /// True if the viewer counts exactly the elements that are not deleted.
    func isWhole(for viewer: TextViewer) -> Bool { tree.root.isWhole(for: viewer) }

    /// Deletes the `removed` elements after the offset, and inserts `text` at the offset, directly after the last
    /// element counted before it.
    ///
    /// The viewer must count at least `offset + removed` elements.
    /// - Parameters:
    ///   - offset: the number of elements before the position, as `viewer` counts them.
    ///   - text: the escaped bytes to insert, without quotes; they are `scalars` elements.
    ///   - mark: the seq and the site of the splice.
    ///   - horizon: history at or below this seq may be dropped.
    mutating func splice(
        at offset: Int,
        removing removed: Int,
        inserting text: Bytes,
        scalars: Int,
        mark: TextMark,
        viewer: TextViewer,
        horizon: Seq
    ) {
        own()
        if removed > 0 {
            var (rest, skip) = (removed, offset)
            // The splice may split the first and the last run.
            tree.weight += 2 * Limits.run
            tree.weight += tree.root.delete(&rest, skip: &skip, mark: mark, viewer: viewer)
        }
        if scalars > 0 {
            let run = TextRun(inserted: mark, bytes: text.count, scalars: scalars)
            // The position may be in the middle of a run, which is then split.
            tree.weight += 2 * Limits.run
            tree.root.insert(run, text, behind: offset, viewer: viewer)
        }
        grow(for: viewer)
        if tree.summary.oldest <= horizon {
            // Settle one leaf per splice. Mergeable runs in other leaves still count for the weight; `weigh` drops them
            // when the weight reaches its limit.
            tree.root.settle(below: horizon, for: viewer)
            while tree.root.children.count == 1 {
                tree.root = tree.root.children[0]
                own()
            }
        }
        tree.summary = tree.root.summary(for: viewer)
    }

    /// Makes this value the only owner of its tree and root.
    private mutating func own() {
        if !isKnownUniquelyReferenced(&tree) {
            let copy = Tree(written: tree.written)
            copy.root = tree.root
            copy.summary = tree.summary
            copy.weight = tree.weight
            tree = copy
        }
        if !isKnownUniquelyReferenced(&tree.root) { tree.root = tree.root.copy() }
    }

    private func grow(for viewer: TextViewer? = nil) {
        while tree.root.isOverfull { tree.root = TextNode(children: tree.root.divided(), for: viewer) }
    }

    // MARK: Whole texts

    /// Appends a run, unless no viewer can ever see it. Call `finishAppending` after the last run.
    mutating func append(_ text: Bytes, scalars: Int, inserted: TextMark, deleters: [TextMark]) {
        guard scalars > 0, !deleters.contains(inserted) else { return }
        var run = TextRun(inserted: inserted, bytes: text.count, scalars: scalars)
        for mark in deleters { run.delete(by: mark) }
        tree.weight += run.weight + (tree.root.runs.isEmpty ? 0 : Limits.run)
        tree.root.append(run, text)
    }

    /// Builds the tree over all appended runs.
    mutating func finishAppending() {
        grow()
        tree.summary = tree.root.summary()
    }

    /// Appends the escaped bytes of the elements that are not deleted.
    func write(into output: inout [UInt8]) {
        output.reserveCapacity(output.count + bytes)
        tree.root.forEachRun { run, text in
            if !run.isDeleted { output.append(contentsOf: text) }
        }
    }

    /// Calls `body` for every run in document order. Runs have no history at or below the horizon and are as long as
    /// possible. They depend only on the history of the text, not on the shape of the tree.
    func forEachRun(above horizon: Seq, _ body: (borrowing TextRun, Bytes) -> Void) {
        var pending: TextRun?
        var bytes = [UInt8]()
        tree.root.forEachRun { run, text in
            guard let run = run.settled(below: horizon) else { return }
            if let before = pending {
                if before.hasHistory(of: run) {
                    pending?.scalars += run.scalars
                    pending?.bytes += run.bytes
                    bytes.append(contentsOf: text)
                    return
                }
                bytes.withUnsafeBytes { body(before, $0) }
            }
            pending = run
            bytes.removeAll(keepingCapacity: true)
            bytes.append(contentsOf: text)
        }
        if let last = pending {
            bytes.withUnsafeBytes { body(last, $0) }
        }
    }
}
