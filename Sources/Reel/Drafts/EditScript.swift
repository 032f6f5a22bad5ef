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
