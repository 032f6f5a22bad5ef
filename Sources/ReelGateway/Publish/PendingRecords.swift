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
    /// The seqs at which the bytes of a repeated op were read.
    private var guesses: [Op: [(seq: Seq, value: [UInt8])]] = [:]
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

    /// Returns true if the op may be on its way more than once.
    func isRepeated(_ op: Op) -> Bool { !others.isEmpty && others[op] != nil }

    /// Notes that the bytes of a repeated op were read at a seq, whichever of its records that was.
    func note(_ op: Op, at seq: Seq, _ value: [UInt8]) { guesses[op, default: []].append((seq, value)) }

    /// Returns true if the bytes of this record were read at the seq, and an equal record may have been there.
    func isGuess(_ record: PendingRecord, at seq: Seq) -> Bool {
        guesses.isEmpty ? false : guesses[record.op]?.contains { $0.seq == seq && $0.value == record.value } ?? false
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
        if !guesses.isEmpty, first(record.op, where: { _ in true }) == nil { guesses[record.op] = nil }
    }
}
