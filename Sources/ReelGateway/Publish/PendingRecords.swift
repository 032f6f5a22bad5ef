import ReelCore

/// What of one lane is on its way, whoever published it. Most often ops come, and come back, one after the other.
final class PendingRecords {
    /// Each op is higher than the one before it. What is over stays until all before it is.
    private var ascending = Queue<(op: Op, flight: PendingRecord)>()
    /// Where the next one that comes back stands, if it is the one behind the last.
    private var expected = 0
    /// What came again or after a higher op, and all that came while there was such a one.
    private var others: [Op: [PendingRecord]] = [:]
    /// How many are not over.
    private(set) var count = 0

    func add(_ flight: PendingRecord) {
        if others.isEmpty, ascending.last.map({ $0.op < flight.op }) ?? true {
            ascending.append((flight.op, flight))
        } else {
            others[flight.op, default: []].append(flight)
        }
        count += 1
    }

    /// The first flight of this op, in the order in which they were taken, that satisfies the condition.
    func first(_ op: Op, where condition: (PendingRecord) -> Bool) -> PendingRecord? {
        if let flight = inOrder(op), !flight.isOver, condition(flight) { return flight }
        return others.isEmpty ? nil : others[op]?.first(where: condition)
    }

    /// Whether the same op is on its way with other content.
    func contradicts(_ op: Op, _ value: [UInt8]) -> Bool {
        first(op) { PublishedContent.contradict(value, $0.value) } != nil
    }

    private func inOrder(_ op: Op) -> PendingRecord? {
        // Most often a new op is asked for.
        guard let last = ascending.last, op <= last.op else { return nil }
        if expected >= ascending.count || ascending[expected].op != op {
            expected = ascending.partition { $0.op < op }
        }
        let (found, flight) = ascending[expected]
        guard found == op else { return nil }
        expected += 1
        return flight
    }

    /// The flight is over.
    func end(_ flight: PendingRecord) {
        count -= 1
        if let same = others[flight.op] {
            let rest = same.filter { $0 !== flight }
            others[flight.op] = rest.isEmpty ? nil : rest
        }
        while let first = ascending.first, first.flight.isOver {
            _ = ascending.popFirst()
            expected = max(0, expected - 1)
        }
    }
}
