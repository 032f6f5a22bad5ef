/// A text with its history: every element (Unicode scalar) knows who inserted and who deleted it, as far as somebody
/// may still splice who has not seen that. A value: a copy costs nothing and shares what does not change.
///
/// It is a B+tree over runs. Each subtree knows its two newest marks of distinct sites, so that a viewer who has seen
/// everything in it takes its count as it is; only what others did after its base is looked into. So a splice costs
/// the logarithm of the text plus that.
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

    /// Begins a text that is filled by `append`; the empty text of an absent field has no plain write.
    init(written: TextMark?) {
        tree = Tree(written: written)
    }

    /// A text that was written plainly: its escaped bytes without quotes.
    init(_ text: Bytes, written: TextMark) {
        self.init(written: written)
        append(text, scalars: JSONText(text).scalarCount, inserted: written, deleters: [])
        finishAppending()
    }

    /// The last plain write of the field, nil if it was absent before its first splice.
    var written: TextMark? { tree.written }
    /// How many elements are left.
    var scalars: Int { Int(tree.summary.scalars) }
    /// How many bytes their escaped text has, without quotes.
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

    /// The same text without what everybody sees by now.
    private func settled(above horizon: Seq) -> SplicedText {
        var text = SplicedText(written: written)
        forEachRun(above: horizon) { run, bytes in
            text.append(bytes, scalars: Int(run.scalars), inserted: run.inserted, deleters: run.deleters)
        }
        text.finishAppending()
        return text
    }

    /// How many elements the viewer counts; known at once to the next who asks for him.
    mutating func count(for viewer: TextViewer) -> Int {
        if let known = tree.summary.count(for: viewer) { return known }
        own()
        let count = tree.root.count(for: viewer)
        tree.summary.keep(count, for: viewer)
        return count
    }

    /// Whether the viewer sees the text as it is.
    func isWhole(for viewer: TextViewer) -> Bool { tree.root.isWhole(for: viewer) }

    /// Deletes the `removed` elements behind the offset and puts the text in at the offset, directly behind the last
    /// element counted before it. The viewer must count at least `offset + removed` elements.
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
            // The first and the last run may be cut.
            tree.weight += 2 * Limits.run
            tree.weight += tree.root.delete(&rest, skip: &skip, mark: mark, viewer: viewer)
        }
        if scalars > 0 {
            let run = TextRun(inserted: mark, bytes: text.count, scalars: scalars)
            // It may stand in the middle of another run.
            tree.weight += 2 * Limits.run
            tree.root.insert(run, text, behind: offset, viewer: viewer)
        }
        grow(for: viewer)
        if tree.summary.oldest <= horizon {
            // One leaf a splice; what comes together all the same counts for the weight, whose limit drops it.
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

    /// Puts a run behind all others, unless nobody can ever see it; `finishAppending` makes the text whole.
    mutating func append(_ text: Bytes, scalars: Int, inserted: TextMark, deleters: [TextMark]) {
        guard scalars > 0, !deleters.contains(inserted) else { return }
        var run = TextRun(inserted: inserted, bytes: text.count, scalars: scalars)
        for mark in deleters { run.delete(by: mark) }
        tree.weight += run.weight + (tree.root.runs.isEmpty ? 0 : Limits.run)
        tree.root.append(run, text)
    }

    /// Builds the tree over all that was appended.
    mutating func finishAppending() {
        grow()
        tree.summary = tree.root.summary()
    }

    /// Appends the escaped bytes of what is left.
    func write(into output: inout [UInt8]) {
        output.reserveCapacity(output.count + bytes)
        tree.root.forEachRun { run, text in
            if !run.isDeleted { output.append(contentsOf: text) }
        }
    }

    /// The runs in document order, without what lies at or below the horizon and as long as they can be: a function of
    /// what happened to the text, not of how the tree stands.
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
