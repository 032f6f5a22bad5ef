internal import ReelCore

/// Builds a batch from rows: copies the requested records into memory that never moves.
struct BatchBuilder {
    enum Progress: Equatable {
        case more
        /// The batch is complete.
        case full
        /// Records before this row are missing.
        case missing
        /// Records at these seqs cannot be read. The last seq is the one that the damaged row claims.
        case damaged(ClosedRange<Seq>)
    }

    private let partition: Int
    private let from: Seq
    private let to: Seq
    private let bytes: Int
    private var next: Seq
    private var size = 0
    private var entries: [RecordBatch.Entry] = []
    private let memory = BatchMemory()

    init(partition: Int, from: Seq, to: Seq, bytes: Int) {
        self.partition = partition
        self.from = from
        self.to = to
        self.bytes = bytes
        next = from
    }

    var isEmpty: Bool { entries.isEmpty }

    func finish() -> RecordBatch {
        RecordBatch(
            partition: partition,
            seqs: from..<next,
            entries: entries,
            heldBytes: memory.byteCount,
            release: { withExtendedLifetime(memory) {} }
        )
    }

    /// Adds the requested records of a row, which holds `count` records up to `last`.
    mutating func add(last: Seq, count: Int64, row: UnsafeRawBufferPointer) -> Progress {
        let damaged = Progress.damaged(next...max(next, last))
        guard count > 0, last >= 0, count - 1 <= last,
            var cursor = RowCursor(row, partition: partition, last: last, count: count)
        else { return damaged }
        let first = last - count + 1
        guard first <= next, last >= next else { return .missing }
        for _ in first..<next {
            guard cursor.next() != nil else { return damaged }
        }

        // First find how much of the row is needed, then copy once, then add the entries, which point into the copy.
        let start = cursor.offset
        var probe = cursor
        var end = start
        var upTo = next
        while upTo <= min(last, to) {
            guard probe.next() != nil else { return damaged }
            guard upTo == from || size + probe.offset - start <= bytes else { break }
            end = probe.offset
            upTo += 1
        }
        let isWhole = upTo == last + 1
        guard !isWhole || end == row.count else { return damaged }
        let copy = memory.copy(UnsafeRawBufferPointer(rebasing: row[start..<end]))
        size += end - start
        while next < upTo, let record = cursor.next() {
            entries.append(
                RecordBatch.Entry(
                    seq: next,
                    witness: record.witness,
                    key: UnsafeRawBufferPointer(start: copy + (record.key.lowerBound - start), count: record.key.count),
                    value: UnsafeRawBufferPointer(
                        start: copy + (record.value.lowerBound - start),
                        count: record.value.count
                    )
                )
            )
            next += 1
        }
        // A row is read and checked as a whole. If a next row of the same size would not fit, it is left to the next
        // batch.
        return isWhole && next <= to && size + row.count <= bytes ? .more : .full
    }
}

/// Memory that grows in pieces that never move, and is freed as a whole.
private final class BatchMemory: @unchecked Sendable {
    private var pieces: [UnsafeMutableRawBufferPointer] = []
    private var used = 0
    private(set) var byteCount = 0

    deinit {
        for piece in pieces { piece.deallocate() }
    }

    func copy(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawPointer {
        if used + bytes.count > pieces.last?.count ?? -1 {
            let size = min(2 * (pieces.last?.count ?? 0), 64 << 10)
            pieces.append(.allocate(byteCount: max(bytes.count, size), alignment: 8))
            byteCount += pieces[pieces.count - 1].count
            used = 0
        }
        let target = UnsafeMutableRawBufferPointer(rebasing: pieces[pieces.count - 1][used..<used + bytes.count])
        target.copyMemory(from: bytes)
        used += bytes.count
        return UnsafeRawPointer(pieces[pieces.count - 1].baseAddress! + (used - bytes.count))
    }
}
