import ReelCore
import ReelLog
import ReelSQLite

/// The hashes of the rows of a partition's file. SQLite does not detect a flipped byte, so each read compares the rows
/// that it uses with their hashes.
///
/// A flipped byte in a key can also hide a row. Therefore a read that finds no stream or object checks the two rows
/// next to the missing row's position. A search that a damaged key has misled ends next to that key.
enum StoredRow {
    // MARK: The hash of each kind of row

    static func meta(_ name: Bytes, _ value: Int64) -> Int64 {
        var hash = RowHash(of: .meta)
        hash.add(name)
        hash.add(value)
        return hash.stored
    }

    static func waiting(_ name: Bytes, _ next: Seq) -> Int64 {
        var hash = RowHash(of: .waiting)
        hash.add(name)
        hash.add(next)
        return hash.stored
    }

    static func stream(
        _ id: Int64,
        name: Bytes,
        head: Bytes,
        digest: Int64,
        sites: Int64,
        lastEvent: Seq,
        figures: StreamFigures?
    ) -> Int64 {
        var hash = RowHash(of: .stream)
        hash.add(id)
        hash.add(name)
        hash.add(head)
        hash.add(digest)
        hash.add(sites)
        hash.add(lastEvent)
        // A row that format 4 has written has no figures, and keeps its hash.
        if let figures {
            hash.add(Int64(figures.objects))
            hash.add(Int64(figures.bytes))
            hash.add(figures.atMs ?? -1)
        }
        return hash.stored
    }

    static func object(_ stream: Int64, _ key: Bytes, digest: Int64, aging: Seq?, _ data: Bytes) -> Int64 {
        var hash = RowHash(of: .object)
        hash.add(stream)
        hash.add(key)
        hash.add(digest)
        hash.add(aging ?? .none)
        hash.add(data)
        return hash.stored
    }

    /// Returns the hash of a site, or of an object before format 7.
    static func entry(_ table: RowHash.Table, _ stream: Int64, _ key: Bytes, _ data: Bytes) -> Int64 {
        var hash = RowHash(of: table)
        hash.add(stream)
        hash.add(key)
        hash.add(data)
        return hash.stored
    }

    static func events(_ stream: Int64, first: Seq, last: Seq, before: Seq, _ data: Bytes) -> Int64 {
        var hash = RowHash(of: .event)
        hash.add(last)
        hash.add(stream)
        hash.add(first)
        hash.add(before)
        hash.add(data)
        return hash.stored
    }

    // MARK: Rows that are read

    /// The columns that `checkStream` expects. Format 4 lacks the last three.
    static let streamColumns = "id, name, head, digest, sites, event, hash, objects, bytes, at"
    static let streamColumnsWithoutFigures = "id, name, head, digest, sites, event, hash, NULL, NULL, NULL"

    /// Returns the figures in a row of `stream`; nil: format 4 has written the row.
    static func figures(_ row: Statement) -> StreamFigures? {
        guard let objects = row.optionalInteger(7), let bytes = row.optionalInteger(8) else { return nil }
        return StreamFigures(objects: Int(objects), bytes: Int(bytes), atMs: row.optionalInteger(9))
    }

    /// Throws `Unusable` unless a row of `stream` has its hash.
    static func checkStream(_ row: Statement) throws(SnapshotFile.Unusable) {
        let hash = stream(
            row.integer(0),
            name: row.bytes(1),
            head: row.bytes(2),
            digest: row.integer(3),
            sites: row.integer(4),
            lastEvent: row.integer(5),
            figures: figures(row)
        )
        try check(hash, row, 6, "of stream \(row.integer(0))")
    }

    /// The columns that `checkObject` expects.
    static let objectColumns = "stream, key, digest, aging, data, hash"

    /// Throws `Unusable` unless a row of `object` has its hash.
    static func checkObject(_ row: Statement) throws(SnapshotFile.Unusable) {
        let hash = object(
            row.integer(0),
            row.bytes(1),
            digest: row.integer(2),
            aging: row.optionalInteger(3),
            row.bytes(4)
        )
        try check(hash, row, 5, "of an object of stream \(row.integer(0))")
    }

    /// Throws `Unusable` unless the column `column` holds `hash`. `name` describes the row in the error.
    static func check(
        _ hash: Int64,
        _ row: Statement,
        _ column: Int32,
        _ name: @autoclosure () -> String
    ) throws(SnapshotFile.Unusable) {
        guard !row.isNull(column), row.integer(column) == hash else {
            throw SnapshotFile.Unusable(reason: "a row \(name()) does not have the hash that was written with it")
        }
    }

    // MARK: Rows that are not found

    /// Throws `Unusable` if a damaged row may have hidden a stream that was not found by its name.
    static func checkAbsence(
        of name: StreamName,
        in connection: Connection,
        format: Int64 = SnapshotFile.format
    ) throws {
        let name = name.description
        let columns = format == SnapshotFile.formatWithoutFigures ? streamColumnsWithoutFigures : streamColumns
        for (beside, order) in [(">", "ASC"), ("<", "DESC")] {
            let row = try connection.prepare(
                "SELECT \(columns) FROM stream WHERE name \(beside) ? ORDER BY name \(order) LIMIT 1"
            )
            row.bind(1, name)
            guard try row.step() else { continue }
            try checkStream(row)
            // SQLite may read the name from the table, but the order from the index.
            guard name.utf8.lexicographicallyPrecedes(row.bytes(1)) == (beside == ">"),
                !name.utf8.elementsEqual(row.bytes(1))
            else { throw SnapshotFile.Unusable(reason: "the index of the streams' names is damaged") }
        }
    }

    /// Throws `Unusable` if a damaged row may have hidden an object that was not found by its stored key.
    static func checkAbsence(ofObject key: [UInt8], of stream: Int64, _ connection: Connection) throws {
        for row in try beside(key, of: stream, objectColumns, "object", connection) where try row.step() {
            try checkObject(row)
        }
    }

    /// Throws `Unusable` if a damaged row may have hidden a site that was not found by its key.
    static func checkAbsence(ofSite key: [UInt8], of stream: Int64, _ connection: Connection) throws {
        for row in try beside(key, of: stream, "stream, key, data, hash", "site", connection) where try row.step() {
            let hash = entry(.site, row.integer(0), row.bytes(1), row.bytes(2))
            try check(hash, row, 3, "of `site`, of stream \(row.integer(0))")
        }
    }

    /// Returns the statements that read the row after a key and the row before it.
    private static func beside(
        _ key: [UInt8],
        of stream: Int64,
        _ columns: String,
        _ table: String,
        _ connection: Connection
    ) throws -> [Statement] {
        try [(">", "ASC"), ("<", "DESC")].map { beside, order in
            let row = try connection.prepare(
                """
                SELECT \(columns) FROM \(table) WHERE (stream, key) \(beside) (?, ?)
                ORDER BY stream \(order), key \(order) LIMIT 1
                """
            )
            row.bind(1, stream)
            row.bind(2, key)
            return row
        }
    }
}
