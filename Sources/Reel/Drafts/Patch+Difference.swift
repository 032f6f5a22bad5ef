extension Patch {
    /// The maximum number of elements in each of two contents that are compared element by element.
    private static var elementsMax: Int { 50_000 }
    /// The maximum number of elements that differ. Beyond it, everything between the first and the last difference is
    /// replaced. The memory of the search is the square of this number.
    private static var differencesMax: Int { 128 }

    /// Returns the patch that makes one content another. It is small if both have few differences, and splits no
    /// element of either. If both have the same units, it is empty.
    ///
    /// - Parameters:
    ///   - old: the content before.
    ///   - new: the content after.
    static func difference(from old: Content, to new: Content) -> Patch {
        guard let change = Content.replacement(from: old, to: new) else { return Patch() }
        let oldRange = change.start..<change.start + change.removed
        let newRange = change.start..<change.start + change.inserted
        if min(change.removed, change.inserted) > 0 {
            let limit = 16 * elementsMax
            if max(change.removed, change.inserted) <= limit,
                let patch = search(from: old, in: oldRange, to: new, in: newRange)
            {
                return patch
            }
        }
        return Patch(Hunk(start: change.start, removed: change.removed, inserted: new.part(newRange)))
    }

    /// Returns the smallest patch by comparing elements, after Myers, “An O(ND) Difference Algorithm and Its
    /// Variations”, 1986; nil if there are too many elements or differences.
    private static func search(
        from old: Content,
        in oldRange: Range<Int>,
        to new: Content,
        in newRange: Range<Int>
    ) -> Patch? {
        let (oldBorders, newBorders) = (old.borders(in: oldRange), new.borders(in: newRange))
        let (oldCount, newCount) = (oldBorders.count - 1, newBorders.count - 1)
        guard max(oldCount, newCount) <= elementsMax, abs(oldCount - newCount) <= differencesMax else { return nil }
        let matches = old.withUnits { oldUnits in
            new.withUnits { newUnits in
                EditScript(
                    oldCount: oldCount,
                    newCount: newCount,
                    differencesMax: differencesMax,
                    isEqual: { a, b in
                        let (x, y) = (oldBorders[a]..<oldBorders[a + 1], newBorders[b]..<newBorders[b + 1])
                        return x.count == y.count
                            && oldUnits[x.lowerBound] == newUnits[y.lowerBound]
                            && (x.count == 1 || oldUnits[x].elementsEqual(newUnits[y]))
                    }
                )?.matches
            }
        }
        guard let matches else { return nil }
        var (patch, a, b) = (Patch(), 0, 0)
        for match in matches + [EditScript.Match(old: oldCount, new: newCount, count: 0)] {
            let (from, to) = (oldBorders[a], oldBorders[match.old])
            let inserted = new.part(newBorders[b]..<newBorders[match.new])
            patch.add(Hunk(start: from, removed: to - from, inserted: inserted))
            (a, b) = (match.old + match.count, match.new + match.count)
        }
        return patch
    }
}
