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

/// The elements that two sequences have in common, as many as possible in the same order.
struct EditScript {
    /// Equal elements in a row.
    struct Match {
        var old: Int
        var new: Int
        var count: Int
    }

    private(set) var matches: [Match] = []

    /// Compares two sequences.
    ///
    /// - Parameters:
    ///   - oldCount: the number of elements in the first sequence.
    ///   - newCount: the number of elements in the second sequence.
    ///   - differencesMax: the maximum number of elements in only one of the sequences. If there are more, the result
    ///     is nil.
    ///   - isEqual: returns true if an element of the first sequence is equal to one of the second.
    init?(oldCount: Int, newCount: Int, differencesMax: Int, isEqual: (Int, Int) -> Bool) {
        let middle = differencesMax + 1
        // The furthest place in the first sequence on each diagonal.
        var reached = [Int](repeating: 0, count: 2 * middle + 1)
        var history: [[Int]] = []
        for differences in 0...differencesMax {
            history.append(Array(reached[middle - differences...middle + differences]))
            for diagonal in stride(from: -differences, through: differences, by: 2) {
                let (below, above) = (reached[middle + diagonal - 1], reached[middle + diagonal + 1])
                let isInsertion = diagonal == -differences || diagonal != differences && below < above
                var old = differences == 0 ? 0 : isInsertion ? above : below + 1
                while old < oldCount, old - diagonal < newCount, old >= 0, old - diagonal >= 0,
                    isEqual(old, old - diagonal)
                {
                    old += 1
                }
                reached[middle + diagonal] = old
                if old >= oldCount, old - diagonal >= newCount {
                    trace(history, oldCount, newCount)
                    return
                }
            }
        }
        return nil
    }

    /// Follows the way back from the end.
    private mutating func trace(_ history: [[Int]], _ oldCount: Int, _ newCount: Int) {
        var (old, new) = (oldCount, newCount)
        for differences in (1..<history.count).reversed() {
            // The places before this round, where the index `differences` stands for the diagonal 0.
            let reached = history[differences]
            let diagonal = old - new
            let (below, above) = (
                diagonal > -differences ? reached[differences + diagonal - 1] : -1,
                diagonal < differences ? reached[differences + diagonal + 1] : -1
            )
            let isInsertion = diagonal == -differences || diagonal != differences && below < above
            let formerOld = isInsertion ? above : below
            let formerNew = formerOld - (isInsertion ? diagonal + 1 : diagonal - 1)
            let start = isInsertion ? formerOld : formerOld + 1
            note(start, start - diagonal, old - start)
            (old, new) = (formerOld, formerNew)
        }
        note(0, 0, old)
        matches.reverse()
    }

    private mutating func note(_ old: Int, _ new: Int, _ count: Int) {
        if count > 0 { matches.append(Match(old: old, new: new, count: count)) }
    }
}
