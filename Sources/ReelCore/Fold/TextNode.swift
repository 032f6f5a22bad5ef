/// A node of a text's B+tree. A leaf holds runs and their bytes; an inner node holds children and their summaries.
///
/// A caller that changes a node must be its only owner. A shared child is copied on the way down. A text that was
/// saved, for a batch that may fail, therefore keeps its own nodes.
final class TextNode: @unchecked Sendable {
    static let leafRuns = 64
    static let leafBytes = 2048
    static let fanout = 32

    private(set) var runs: [TextRun]
    /// The escaped text of the runs, concatenated, including deleted runs.
    private(set) var bytes: [UInt8]
    private(set) var children: [TextNode]
    private(set) var summaries: [TextSummary]

    init(runs: [TextRun] = [], bytes: [UInt8] = []) {
        self.runs = runs
        self.bytes = bytes
        children = []
        summaries = []
    }

    init(children: [TextNode], for viewer: TextViewer? = nil) {
        runs = []
        bytes = []
        self.children = children
        summaries = children.map { $0.summary(for: viewer) }
    }

    private init(copy other: TextNode) {
        runs = other.runs
        bytes = other.bytes
        children = other.children
        summaries = other.summaries
    }

    func copy() -> TextNode { TextNode(copy: self) }

    private var isLeaf: Bool { children.isEmpty }
    private var isEmpty: Bool { children.isEmpty && runs.isEmpty }
    var isOverfull: Bool {
        isLeaf ? runs.count > Self.leafRuns || bytes.count > Self.leafBytes : children.count > Self.fanout
    }

    /// Returns the summary of the node. It includes the count of `viewer` if all counts that this needs are known.
    func summary(for viewer: TextViewer? = nil) -> TextSummary {
        var sum = TextSummary()
        if isLeaf {
            runs.withUnsafeBufferPointer { for i in $0.indices { sum.add($0[i]) } }
        } else {
            summaries.withUnsafeBufferPointer { for i in $0.indices { sum.add($0[i]) } }
        }
        if let viewer, !sum.isSettled(for: viewer), let count = knownCount(for: viewer) {
            sum.keep(count, for: viewer)
        }
        return sum
    }

    // MARK: Counting

    /// Returns the number of elements that `viewer` counts; nil if the count of a child of an inner node is unknown.
    private func knownCount(for viewer: TextViewer) -> Int? {
        var count = 0
        if isLeaf {
            runs.withUnsafeBufferPointer {
                for i in $0.indices where $0[i].counts(for: viewer) { count += Int($0[i].scalars) }
            }
        } else {
            for summary in summaries {
                guard let known = summary.count(for: viewer) else { return nil }
                count += known
            }
        }
        return count
    }

    /// Returns the number of elements that `viewer` counts. All inner nodes cache their counts for the next call with
    /// the same viewer.
    func count(for viewer: TextViewer) -> Int {
        knownCount(for: viewer) ?? children.indices.reduce(0) { $0 + count(ofChild: $1, for: viewer) }
    }

    private func count(ofChild i: Int, for viewer: TextViewer) -> Int {
        if let known = summaries[i].count(for: viewer) { return known }
        if !children[i].isLeaf { own(i) }
        let count = children[i].count(for: viewer)
        summaries[i].keep(count, for: viewer)
        return count
    }

    /// True if the viewer counts every element that is not deleted, and no other.
    func isWhole(for viewer: TextViewer) -> Bool {
        if isLeaf { return runs.allSatisfy { $0.counts(for: viewer) != $0.isDeleted } }
        return zip(children, summaries).allSatisfy { $1.isSettled(for: viewer) || $0.isWhole(for: viewer) }
    }

    // MARK: Changing

    /// Appends a run to a leaf, without a limit of its size.
    func append(_ run: TextRun, _ text: Bytes) {
        runs.append(run)
        bytes.append(contentsOf: text)
    }

    /// Inserts a run directly after the first `offset` elements that `viewer` counts.
    func insert(_ run: TextRun, _ text: Bytes, behind offset: Int, viewer: TextViewer) {
        var rest = offset
        if isLeaf {
            var (i, at) = (0, 0)
            while rest > 0 {
                let counted = runs[i].counts(for: viewer) ? Int(runs[i].scalars) : 0
                if counted > rest { split(i, at: at, scalars: rest) }
                rest -= min(counted, rest)
                at += Int(runs[i].bytes)
                i += 1
            }
            bytes.insert(contentsOf: text, at: at)
            if i > 0, runs[i - 1].hasHistory(of: run) {
                runs[i - 1].bytes += run.bytes
                runs[i - 1].scalars += run.scalars
            } else {
                runs.insert(run, at: i)
            }
        } else {
            var i = 0
            while rest > 0 {
                let counted = count(ofChild: i, for: viewer)
                if counted >= rest { break }
                rest -= counted
                i += 1
            }
            own(i)
            children[i].insert(run, text, behind: rest, viewer: viewer)
            _ = adopt(i, for: viewer)
        }
    }

    /// Deletes the next `count` elements that `viewer` counts after the first `skip` of them. Decreases both by the
    /// elements found in this node. Returns the increase of the weight.
    func delete(_ count: inout Int, skip: inout Int, mark: TextMark, viewer: TextViewer) -> Int {
        if isLeaf { return deleteInLeaf(&count, skip: &skip, mark: mark, viewer: viewer) }
        var weight = 0
        var i = 0
        while i < children.count, count > 0 {
            let counted = self.count(ofChild: i, for: viewer)
            if counted <= skip {
                skip -= counted
                i += 1
            } else {
                own(i)
                weight += children[i].delete(&count, skip: &skip, mark: mark, viewer: viewer)
                if children[i].isEmpty { drop(i) } else { i += adopt(i, for: viewer) }
            }
        }
        return weight
    }

    private func deleteInLeaf(_ count: inout Int, skip: inout Int, mark: TextMark, viewer: TextViewer) -> Int {
        var weight = 0
        var (i, at) = (0, 0)
        while i < runs.count, count > 0 {
            if runs[i].counts(for: viewer) {
                let scalars = Int(runs[i].scalars)
                if scalars <= skip {
                    skip -= scalars
                } else if skip > 0 {
                    split(i, at: at, scalars: skip)
                    skip = 0
                } else {
                    if scalars > count { split(i, at: at, scalars: count) }
                    count -= Int(runs[i].scalars)
                    if runs[i].inserted == mark {
                        // The insertion and the deletion have the same mark, so every viewer sees both or neither. No
                        // viewer will ever count these elements.
                        bytes.removeSubrange(at..<at + Int(runs[i].bytes))
                        runs.remove(at: i)
                        continue
                    }
                    weight += runs[i].delete(by: mark)
                }
            }
            at += Int(runs[i].bytes)
            i += 1
        }
        return weight
    }

    /// Splits run `i`, with bytes that begin at `at`, after its first `scalars` elements.
    private func split(_ i: Int, at: Int, scalars: Int) {
        var tail = runs[i]
        let isPlain = tail.bytes == tail.scalars
        let cut =
            isPlain ? scalars : bytes.withUnsafeBytes { EscapedText.bytes(of: scalars, in: $0, from: at) }
        runs[i].scalars = Int32(scalars)
        runs[i].bytes = Int32(cut)
        tail.scalars -= Int32(scalars)
        tail.bytes -= Int32(cut)
        runs.insert(tail, at: i + 1)
    }

    /// Drops the history at or below the horizon in one leaf that has some. The count of `viewer` does not change.
    func settle(below horizon: Seq, for viewer: TextViewer) {
        if isLeaf {
            settleLeaf(below: horizon)
        } else if let i = summaries.firstIndex(where: { $0.oldest <= horizon }) {
            own(i)
            children[i].settle(below: horizon, for: viewer)
            if children[i].isEmpty {
                drop(i)
                return
            }
            summaries[i] = children[i].summary(for: viewer)
            if i + 1 < children.count { merge(i, for: viewer) }
            if i > 0 { merge(i - 1, for: viewer) }
        }
    }

    private func settleLeaf(below horizon: Seq) {
        var kept = [TextRun]()
        var text = [UInt8]()
        kept.reserveCapacity(runs.count)
        text.reserveCapacity(bytes.count)
        var at = 0
        for run in runs {
            let end = at + Int(run.bytes)
            defer { at = end }
            guard let run = run.settled(below: horizon) else { continue }
            text += bytes[at..<end]
            if let last = kept.last, last.hasHistory(of: run) {
                kept[kept.count - 1].bytes += run.bytes
                kept[kept.count - 1].scalars += run.scalars
            } else {
                kept.append(run)
            }
        }
        runs = kept
        bytes = text
    }

    // MARK: Shape

    /// Makes this node the only owner of its child.
    private func own(_ i: Int) {
        if !isKnownUniquelyReferenced(&children[i]) { children[i] = children[i].copy() }
    }

    /// Updates the summary of a changed child, and splits the child if it is too large. Returns the number of resulting
    /// children.
    private func adopt(_ i: Int, for viewer: TextViewer) -> Int {
        guard children[i].isOverfull else {
            summaries[i] = children[i].summary(for: viewer)
            return 1
        }
        let parts = children[i].divided()
        children.replaceSubrange(i...i, with: parts)
        summaries.replaceSubrange(i...i, with: parts.map { $0.summary(for: viewer) })
        return parts.count
    }

    private func drop(_ i: Int) {
        children.remove(at: i)
        summaries.remove(at: i)
    }

    /// Merges child `i` and the next one if both together are small.
    private func merge(_ i: Int, for viewer: TextViewer) {
        let (a, b) = (children[i], children[i + 1])
        guard a.runs.count + b.runs.count <= Self.leafRuns / 2, a.bytes.count + b.bytes.count <= Self.leafBytes / 2,
            a.children.count + b.children.count <= Self.fanout / 2
        else { return }
        let joined = TextNode(runs: a.runs + b.runs, bytes: a.bytes + b.bytes)
        joined.children = a.children + b.children
        joined.summaries = a.summaries + b.summaries
        children.replaceSubrange(i...(i + 1), with: CollectionOfOne(joined))
        summaries.replaceSubrange(i...(i + 1), with: CollectionOfOne(joined.summary(for: viewer)))
    }

    /// Returns the same content in nodes of at least half the size.
    func divided() -> [TextNode] {
        guard isLeaf else {
            let parts = (children.count + Self.fanout / 2) / (Self.fanout / 2 + 1)
            return (0..<parts).map { part in
                let range = children.count * part / parts..<children.count * (part + 1) / parts
                let node = TextNode()
                node.children = Array(children[range])
                node.summaries = Array(summaries[range])
                return node
            }
        }
        var leaves = [TextNode()]
        var at = 0
        for var run in runs {
            while run.bytes > 0 {
                var head = run
                if Int(run.bytes) > Self.leafBytes / 2 {
                    let cut = bytes.withUnsafeBytes {
                        EscapedText.prefix(Self.leafBytes / 2, in: $0, from: at, to: at + Int(run.bytes))
                    }
                    head.bytes = Int32(cut.bytes)
                    head.scalars = Int32(cut.scalars)
                }
                var leaf = leaves[leaves.count - 1]
                if leaf.runs.count > Self.leafRuns / 2 || leaf.bytes.count + Int(head.bytes) > Self.leafBytes * 3 / 4 {
                    leaf = TextNode()
                    leaves.append(leaf)
                }
                leaf.runs.append(head)
                leaf.bytes += bytes[at..<at + Int(head.bytes)]
                run.bytes -= head.bytes
                run.scalars -= head.scalars
                at += Int(head.bytes)
            }
        }
        return leaves
    }

    // MARK: Reading

    /// Calls `body` for every run with its bytes, in document order.
    func forEachRun(_ body: (borrowing TextRun, Bytes) -> Void) {
        for child in children { child.forEachRun(body) }
        bytes.withUnsafeBytes { text in
            var at = 0
            for run in runs {
                body(run, Bytes(rebasing: text[at..<at + Int(run.bytes)]))
                at += Int(run.bytes)
            }
        }
    }
}
