internal import ReelCore

/// A partition of a `MemoryLog`.
struct MemoryPartition {
    private(set) var first: Seq = 0
    /// The records from `first` on; nil: a seq without a record.
    private var records: [StoredRecord?] = []
    var isStalled = false
    /// The error of every operation on the partition; nil: it works.
    var loss: LogError?

    /// The seq of the next record.
    var end: Seq { first + Seq(records.count) }

    var bounds: LogBounds { end == 0 ? .empty : LogBounds(first: first, last: end - 1) }

    mutating func append(_ appended: [LogAppend]) -> [Seq] {
        appended.map { record in
            records.append(StoredRecord(record))
            return end - 1
        }
    }

    mutating func leaveHole() {
        records.append(nil)
    }

    /// Drops the records before `seq`.
    mutating func trim(before seq: Seq) {
        let count = Int(min(max(seq, first), end) - first)
        records.removeFirst(count)
        first += Seq(count)
    }

    /// Drops the record `seq` and all later ones.
    mutating func rollBack(to seq: Seq) {
        records.removeLast(Int(end - min(max(seq, first), end)))
    }

    func batch(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch {
        guard from >= first else { throw .belowTheFirst(from, first: first) }
        guard from <= to, from < end else { return RecordBatch(partition: partition, empty: from..<from) }
        var entries: [RecordBatch.Entry] = []
        var kept: [StoredRecord] = []
        var size = 0
        var next = from
        while next <= min(to, end - 1) {
            if let record = records[Int(next - first)] {
                guard kept.isEmpty || size + record.bytes.count <= bytes else { break }
                size += record.bytes.count
                kept.append(record)
                entries.append(record.entry(next))
            }
            next += 1
        }
        return RecordBatch(
            partition: partition,
            seqs: from..<next,
            entries: entries,
            release: { withExtendedLifetime(kept) {} }
        )
    }
}

/// A record at a fixed address, so that batches can share it.
private final class StoredRecord: @unchecked Sendable {
    let bytes: UnsafeMutableRawBufferPointer
    private let keySize: Int
    private let witness: Witness?

    init(_ record: LogAppend) {
        bytes = .allocate(byteCount: record.key.count + record.value.count, alignment: 1)
        keySize = record.key.count
        witness = record.witness
        bytes.copyBytes(from: record.key)
        UnsafeMutableRawBufferPointer(rebasing: bytes[keySize...]).copyBytes(from: record.value)
    }

    deinit {
        bytes.deallocate()
    }

    func entry(_ seq: Seq) -> RecordBatch.Entry {
        RecordBatch.Entry(
            seq: seq,
            witness: witness,
            key: UnsafeRawBufferPointer(rebasing: bytes[..<keySize]),
            value: UnsafeRawBufferPointer(rebasing: bytes[keySize...])
        )
    }
}
