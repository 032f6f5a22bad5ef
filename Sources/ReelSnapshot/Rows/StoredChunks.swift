import ReelCore
import ReelSQLite

/// The chunks of one stream in the index of events, in seq order, each compared with its hash. Each chunk names the one
/// before it, and the stream's row names the last one, so a missing chunk is always detected.
struct StoredChunks {
    private let stream: Int64
    private let rows: Statement
    /// The next chunk ends at this seq or later.
    private var from: Seq
    /// The last seq of the last chunk of the stream; −1: there is none.
    private let end: Seq
    /// The last seq of the chunk that precedes the chunk read last; −1: the chunk read last is the first.
    private(set) var previous = Seq.none
    /// The last seq of the chunk read last, since the start or the last `seek`; nil: none was read.
    private var before: Seq?

    /// The chunks of a stream that end at `from` or later.
    ///
    /// - Parameters:
    ///   - stream: The number of the stream, or `SnapshotFile.barriers`.
    ///   - end: The last seq of the stream's last chunk; −1: there is none.
    init(of stream: Int64, from: Seq, end: Seq, in connection: Connection) throws(SQLiteError) {
        (self.stream, self.from, self.end) = (stream, from, end)
        rows = try connection.prepare(
            "SELECT first, last, before, data, hash FROM event WHERE stream = ? AND last >= ? ORDER BY last"
        )
        rows.bind(1, stream)
        rows.bind(2, from)
    }

    /// Returns the next chunk and its last seq; nil: there is none. The bytes are valid until the next call.
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

    /// Continues with the chunks that end at `from` or later.
    mutating func seek(_ from: Seq) {
        rows.reset()
        rows.bind(2, from)
        (self.from, before) = (from, nil)
    }

    private static func missing(_ seq: Seq) -> SnapshotFile.Unusable {
        SnapshotFile.Unusable(reason: "the index lacks the events up to seq \(seq)")
    }
}
