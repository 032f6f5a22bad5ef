/// Replacements of parts of a content. Their places count units of the content before all of them.
///
/// Two patches of one content can be performed in either order: `rebased` moves each one over the other, and both
/// orders give the same result. An operational transformation of this kind has one server that decides the order; here
/// it is the client, which shows one content at a time.
struct Patch<Content: DraftContent>: Sendable {
    /// One replacement. The new units are inserted at `start`, before the units that are removed.
    struct Hunk: Sendable {
        var start: Int
        var removed: Int
        var inserted: Content

        var end: Int { start + removed }
        var growth: Int { inserted.unitCount - removed }
        var isEmpty: Bool { removed == 0 && inserted.unitCount == 0 }
    }

    /// The replacements in order. No two of them overlap or touch.
    private(set) var hunks: [Hunk] = []

    init() {}

    init(_ hunk: Hunk) { add(hunk) }

    var isEmpty: Bool { hunks.isEmpty }

    /// The number of units that the patch inserts.
    var insertedCount: Int { hunks.reduce(0) { $0 + $1.inserted.unitCount } }

    /// Returns the content after the replacements.
    func applied(to content: Content) -> Content {
        var content = content
        for hunk in hunks.reversed() { content.replaceUnits(hunk.start..<hunk.end, with: hunk.inserted) }
        return content
    }

    /// Adds a replacement that comes after all others. It is joined with the last one if they touch.
    mutating func add(_ hunk: Hunk) {
        if hunk.isEmpty { return }
        guard let last = hunks.last, last.end >= hunk.start else { return hunks.append(hunk) }
        hunks[hunks.count - 1].removed += hunk.removed
        hunks[hunks.count - 1].inserted.append(contentsOf: hunk.inserted)
    }

    // MARK: One after the other

    /// Adds a replacement whose place counts units of the content after the present replacements.
    mutating func append(_ edit: Hunk) {
        var (index, growth) = (0, 0)
        while index < hunks.count, hunks[index].start + growth + hunks[index].inserted.unitCount < edit.start {
            growth += hunks[index].growth
            index += 1
        }
        let first = index
        var joined = Hunk(start: edit.start - growth, removed: 0, inserted: edit.inserted)
        if first < hunks.count, hunks[first].start + growth < edit.start {
            let hunk = hunks[first]
            joined.start = hunk.start
            joined.inserted = hunk.inserted.part(0..<edit.start - growth - hunk.start)
            joined.inserted.append(contentsOf: edit.inserted)
        }
        var end = edit.end - growth
        while index < hunks.count, hunks[index].start + growth <= edit.end {
            let hunk = hunks[index]
            let place = hunk.start + growth
            growth += hunk.growth
            index += 1
            let count = hunk.inserted.unitCount
            if place + count > edit.end {
                joined.inserted.append(contentsOf: hunk.inserted.part(edit.end - place..<count))
            }
            end = max(hunk.end, edit.end - growth)
        }
        joined.removed = end - joined.start
        hunks.replaceSubrange(first..<index, with: joined.isEmpty ? [] : [joined])
    }

    /// Adds a patch of the content after the present replacements.
    mutating func append(_ later: Patch) {
        for hunk in later.hunks.reversed() { append(hunk) }
    }

    /// Removes and returns the first replacement. The places of the others then count units of the content after it.
    mutating func removeFirst() -> Hunk? {
        guard let first = hunks.first else { return nil }
        hunks.removeFirst()
        for index in hunks.indices { hunks[index].start += first.growth }
        return first
    }

    /// Removes and returns the first replacements, which insert about `unitsMax` units and are at most `hunksMax`. The
    /// places of the others then count units of the content after them.
    mutating func removeFirst(unitsMax: Int, hunksMax: Int) -> Patch {
        if hunks.count <= hunksMax, insertedCount <= unitsMax {
            defer { self = Patch() }
            return self
        }
        var (first, rest) = (Patch(), Patch())
        var (room, growth) = (unitsMax, 0)
        for (index, hunk) in hunks.enumerated() {
            guard index < hunksMax, room > 0 else {
                rest.hunks.append(Hunk(start: hunk.start + growth, removed: hunk.removed, inserted: hunk.inserted))
                continue
            }
            let count = hunk.inserted.unitCount
            let cut = count > room ? hunk.inserted.border(near: room) : count
            let part = Hunk(start: hunk.start, removed: hunk.removed, inserted: hunk.inserted.part(0..<cut))
            first.hunks.append(part)
            growth += part.growth
            room = cut < count ? 0 : room - count
            if cut < count {
                let inserted = hunk.inserted.part(cut..<count)
                rest.hunks.append(Hunk(start: hunk.end + growth, removed: 0, inserted: inserted))
            }
        }
        self = rest
        return first
    }

    // MARK: Beside each other

    /// Returns this patch as it is performed after another patch of the same content. The content keeps the
    /// insertions of both patches, and loses the removals of both.
    ///
    /// - Parameters:
    ///   - other: the patch that is performed before.
    ///   - isFirst: true if this patch's units come before those that the other patch inserts at the same place. The
    ///     call for the other patch must pass the opposite.
    func rebased(over other: Patch, isFirst: Bool) -> Patch {
        if other.isEmpty { return self }
        var result = Patch()
        var (next, growth) = (0, 0)
        for hunk in hunks {
            // Replacements of the other patch that come before the place.
            while next < other.hunks.count, other.hunks[next].end <= hunk.start, other.hunks[next].start < hunk.start {
                growth += other.hunks[next].growth
                next += 1
            }
            var place = hunk.start + growth
            if next < other.hunks.count {
                let same = other.hunks[next]
                if same.start < hunk.start {
                    place = same.start + growth + same.inserted.unitCount
                } else if same.start == hunk.start, !isFirst {
                    place += same.inserted.unitCount
                }
            }
            result.add(Hunk(start: place, removed: 0, inserted: hunk.inserted))
            // The removed units, without those that the other patch removes as well.
            var (from, index, shift) = (hunk.start, next, growth)
            while index < other.hunks.count, other.hunks[index].start < hunk.end {
                let cut = other.hunks[index]
                result.addRemoval(from..<max(from, min(cut.start, hunk.end)), by: shift)
                from = max(from, cut.end)
                shift += cut.growth
                index += 1
            }
            result.addRemoval(from..<max(from, hunk.end), by: shift)
        }
        return result
    }

    private mutating func addRemoval(_ range: Range<Int>, by shift: Int) {
        add(Hunk(start: range.lowerBound + shift, removed: range.count, inserted: Content()))
    }
}
