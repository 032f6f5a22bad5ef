import ReelBase
import ReelCore

/// The records of one lane that are on their way, from all connections. Ops most often are published, and read back, in
/// order.
final class PendingRecords {
    /// The records with ascending ops. A record that is over stays until all before it are over.
    private var ascending = Deque<(op: Op, record: PendingRecord)>()
    /// The index of the next record to be read back, if it follows the last one.
    private var expected = 0
    /// The records with a repeated op, or with one lower than an earlier op, and all that arrived while there were such
    /// records.
    private var others: [Op: [PendingRecord]] = [:]
    /// The number of records that are not over.
    private(set) var count = 0

    func add(_ record: PendingRecord) {
        if others.isEmpty, ascending.last.map({ $0.op < record.op }) ?? true {
            ascending.append((record.op, record))
        } else {
            others[record.op, default: []].append(record)
        }
        count += 1
    }

    /// Returns the first record of this op, in the order of acceptance, that satisfies the condition.
    func first(_ op: Op, where condition: (PendingRecord) -> Bool) -> PendingRecord? {
        if let record = inOrder(op), !record.isOver, condition(record) { return record }
        return others.isEmpty ? nil : others[op]?.first(where: condition)
    }

    /// Returns the record that was read at a seq, of those of this op that satisfy the condition: the one that the log
    /// has promised there, else the first one that it has promised nowhere.
    func firstToRead(_ op: Op, at seq: Seq, where condition: (PendingRecord) -> Bool) -> PendingRecord? {
        guard let record = first(op, where: condition) else { return nil }
        guard !others.isEmpty, record.promisedSeq != seq else { return record }
        let equal = others[op]?.filter(condition) ?? []
        if let promised = equal.first(where: { $0.promisedSeq == seq }) { return promised }
        return record.promisedSeq == nil ? record : equal.first { $0.promisedSeq == nil } ?? record
    }

    /// Returns true if the same op is on its way with other content.
    func contradicts(_ op: Op, _ value: [UInt8]) -> Bool {
        first(op) { PublishedContent.contradict(value, $0.value) } != nil
    }

    private func inOrder(_ op: Op) -> PendingRecord? {
        // Most often a new op is looked for.
        guard let last = ascending.last, op <= last.op else { return nil }
        if expected >= ascending.count || ascending[expected].op != op {
            expected = ascending.partitioningIndex { $0.op < op }
        }
        let (found, record) = ascending[expected]
        guard found == op else { return nil }
        expected += 1
        return record
    }

    /// Removes a record that is over.
    func end(_ record: PendingRecord) {
        count -= 1
        if let same = others[record.op] {
            let rest = same.filter { $0 !== record }
            others[record.op] = rest.isEmpty ? nil : rest
        }
        while let first = ascending.first, first.record.isOver {
            _ = ascending.popFirst()
            expected = max(0, expected - 1)
        }
    }
}
