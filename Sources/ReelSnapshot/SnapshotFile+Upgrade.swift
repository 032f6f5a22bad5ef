import ReelCore
import ReelSQLite

// A file of format 3 has rows without hashes. The first opening rewrites them with hashes in one transaction. The log
// may have been trimmed, so the file could not be folded again from the log.
extension SnapshotFile {
    /// The format before rows had hashes.
    static let formatWithoutHashes: Int64 = 3

    /// The format before the rows of streams had `StreamFigures`.
    static let formatWithoutFigures: Int64 = 4

    /// The format before streams were folded in turns: all were folded up to the same seq.
    static let formatWithoutTurns: Int64 = 5

    /// Throws `Unusable` if an object of a file of format 3 or 4 may have more runs than the fold allows since format
    /// 5. A new fold of the log then makes such a text plain at the event that exceeded the limit. A run has at least
    /// three bytes in a row, so a shorter row has no more than 65,537 runs.
    static func checkRuns(in connection: Connection) throws {
        let large = try connection.integer("SELECT count(*) FROM object WHERE length(data) > \(3 * 65_537)") ?? 0
        guard large == 0 else {
            throw Unusable(reason: "found \(large) large objects, folded without the limit of a text's runs")
        }
    }

    /// Upgrades a file of format 4 or 5 to the current format in one transaction. A stream of format 4 gets its figures
    /// at its next write: its row and the row's hash stay as they are until then.
    static func upgrade(_ connection: Connection, from found: Int64) throws {
        try connection.begin()
        if found == formatWithoutFigures {
            try connection.execute("ALTER TABLE stream ADD COLUMN objects INTEGER")
            try connection.execute("ALTER TABLE stream ADD COLUMN bytes INTEGER")
            try connection.execute("ALTER TABLE stream ADD COLUMN at INTEGER")
        }
        try createWaiting(connection)
        let row = try connection.prepare("UPDATE meta SET value = ?, hash = ? WHERE name = 'format'")
        row.bind(1, format)
        row.bind(2, Array("format".utf8).withUnsafeBytes { StoredRow.meta($0, format) })
        try row.run()
        try connection.commit()
    }

    /// Renames the tables of format 3 and makes those of the current format, inside a transaction that it begins.
    /// Throws `Unusable` unless each stream has the digest that was written with it, so that damaged rows get no
    /// hashes.
    static func beginUpgrade(_ connection: Connection, _ identity: Identity) throws {
        try connection.begin()
        let position = try StoredPosition(reading: connection)
        let names = try connection.prepare("SELECT name FROM stream NOT INDEXED")
        while try names.step() {
            guard let name = StreamName(names.text(0)) else { throw Unusable(reason: "found a stream without a name") }
            _ = try StoredStream(
                name,
                identity: identity,
                seq: position.seq,
                in: connection,
                format: formatWithoutHashes
            )
        }
        for table in tables { try connection.execute("ALTER TABLE \(table) RENAME TO old_\(table)") }
        try connection.execute("DROP INDEX stream_by_sites; DROP INDEX event_of_stream")
        try createTables(connection)
    }

    /// Copies the rows of the renamed tables, drops these tables, and commits.
    func finishUpgrade() throws {
        func forEachRow(_ columns: String, of table: String, _ body: (Statement) throws -> Void) throws {
            let rows = try connection.prepare("SELECT \(columns) FROM old_\(table)")
            while try rows.step() { try body(rows) }
        }
        try forEachRow("name, value", of: "meta") { try setMeta($0.text(0), $0.integer(1)) }
        try setMeta("format", Self.format)
        var lastEvents: [Int64: Seq] = [:]
        try forEachRow("stream, first, last, data", of: "event ORDER BY last") { row in
            let (stream, last) = (row.integer(0), row.integer(2))
            let before = lastEvents.updateValue(last, forKey: stream) ?? .none
            try addEvents(stream, first: row.integer(1), last: last, before: before, data: row.bytes(3))
        }
        try setMeta("barrier", lastEvents[Self.barriers] ?? .none)
        try forEachRow("id, name, head, digest, sites", of: "stream") { row in
            guard let name = StreamName(row.text(1)) else { throw Unusable(reason: "found a stream without a name") }
            try setStream(
                row.integer(0),
                name: name,
                head: row.bytes(2),
                digest: UInt64(bitPattern: row.integer(3)),
                sites: Int(row.integer(4)),
                lastEvent: lastEvents[row.integer(0)] ?? .none,
                figures: nil
            )
        }
        try forEachRow("stream, key, data", of: "object") { row in
            try setObject(row.integer(0), key: row.array(1), data: row.bytes(2))
        }
        try forEachRow("stream, key, data", of: "site") { row in
            guard let site = StoredStream.site(of: row.bytes(1)) else { throw Unusable(reason: "found a bad site key") }
            try setSite(row.integer(0), site, data: row.bytes(2))
        }
        for table in Self.tables { try connection.execute("DROP TABLE old_\(table)") }
        try connection.commit()
    }
}
