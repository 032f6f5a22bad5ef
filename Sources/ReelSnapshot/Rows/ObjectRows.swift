import ReelCore
import ReelSQLite

/// The rows of a stream's objects and tombstones in the order of a snapshot's lines, each compared with its hash.
struct ObjectRows {
    /// A row. Its bytes are valid until the next one is read.
    struct Row {
        /// The key as the fold has it.
        let key: [UInt8]
        /// The bytes that the fold has written.
        let data: Bytes
        /// The sum of the hashes of the object's lines in the digest.
        let digest: UInt64
        /// See `ReelCore.StoredRow.agingSeq`.
        let agingSeq: Seq?
    }

    private let stream: Int64
    private let rows: Statement

    /// The rows of a stream, which has this number.
    ///
    /// - Parameters:
    ///   - stream: The number of the stream.
    ///   - onlyAging: True for the rows that the horizon changes: all tombstones, and objects with the history of a
    ///     text.
    ///   - connection: The connection, inside a transaction.
    init(of stream: Int64, onlyAging: Bool = false, in connection: Connection) throws(SQLiteError) {
        self.stream = stream
        rows = try connection.prepare(
            """
            SELECT \(StoredRow.objectColumns) FROM object WHERE stream = ?
            \(onlyAging ? "AND +aging IS NOT NULL" : "") ORDER BY key
            """
        )
        rows.bind(1, stream)
    }

    /// Returns the next row; nil: there is none.
    func next() throws -> Row? {
        guard try rows.step() else { return nil }
        try StoredRow.checkObject(rows)
        return Row(
            key: ObjectKey.escaped(rows.bytes(1)),
            data: rows.bytes(4),
            digest: UInt64(bitPattern: rows.integer(2)),
            agingSeq: rows.optionalInteger(3)
        )
    }
}
