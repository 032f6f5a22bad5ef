import ReelCore
import ReelSQLite

/// The chunks of one stream in the index of events, in the order of their seqs, each compared with its hash. Each chunk
/// names the one before it, and the stream's row names the last one: so no chunk can be missing unnoticed.
struct StoredChunks {
    private let stream: Int64
    private let rows: Statement
    /// The next chunk ends at this seq or later.
    private var from: Seq
    /// The last seq of the last chunk of the stream; −1: there is none.
    private let end: Seq
    /// The last seq of the chunk that stands before the one that was read last; −1: it was the first.
    private(set) var previous = Seq.none
    /// The last seq of the chunk that was read before; nil: none was.
    private var before: Seq?

    /// The chunks of a stream, or of `SnapshotFile.barriers`, that end at `from` or later. `end` is the last seq of the
    /// last one, −1 where there is none.
    init(of stream: Int64, from: Seq, end: Seq, in connection: Connection) throws(SQLiteError) {
        (self.stream, self.from, self.end) = (stream, from, end)
        rows = try connection.prepare(
            "SELECT first, last, before, data, hash FROM event WHERE stream = ? AND last >= ? ORDER BY last"
        )
        rows.bind(1, stream)
        rows.bind(2, from)
    }

    /// The bytes of the next chunk and its last seq, lent until the next call; nil: there is none.
    mutating func next() throws -> (last: Seq, data: Bytes)? {
        guard try rows.step() else {
            guard end == before ?? end, before != nil || end < from else { throw Self.missing(end) }
            return nil
        }
        let (first, last, previous, data) = (rows.integer(0), rows.integer(1), rows.integer(2), rows.bytes(3))
        let hash = StoredRow.events(stream, first: first, last: last, before: previous, data)
        try StoredRow.check(hash, rows, 4, "of events up to seq \(last)")
        guard last >= from, before.map({ $0 == previous }) ?? (previous < from) else { throw Self.missing(previous) }
        (from, before, self.previous) = (last + 1, last, previous)
        return (last, data)
    }

    /// Goes on with the chunks that end at `from` or later.
    mutating func seek(_ from: Seq) {
        rows.reset()
        rows.bind(2, from)
        (self.from, before) = (from, nil)
    }

    private static func missing(_ seq: Seq) -> SnapshotFile.Unusable {
        SnapshotFile.Unusable(reason: "the index lacks the events up to seq \(seq)")
    }
}
