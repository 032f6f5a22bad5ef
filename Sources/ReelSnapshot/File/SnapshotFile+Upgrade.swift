import ReelCore
import ReelLog
import ReelSQLite

// The first opening of a file of an older format rewrites its rows in one transaction. The log may have been trimmed,
// so the file could not be folded again from the log.
extension SnapshotFile {
    /// The format before rows had hashes.
    static let formatWithoutHashes: Int64 = 3

    /// The format before the rows of streams had `StreamFigures`.
    static let formatWithoutFigures: Int64 = 4

    /// The format before streams were folded in turns: all were folded up to the same seq.
    static let formatWithoutTurns: Int64 = 5

    /// The format before the rows of objects had their digests, and keys without escapes.
    static let formatWithoutDigests: Int64 = 6

    /// Throws `Unusable` if an object of a file of format 3 or 4 may have more runs than the fold allows since format
    /// 5. A new fold of the log then makes such a text plain at the event that exceeded the limit. A run has at least
    /// three bytes in a row, so a shorter row has no more than 65,537 runs.
    static func checkRuns(in connection: Connection) throws {
        let large = try connection.integer("SELECT count(*) FROM object WHERE length(data) > \(3 * 65_537)") ?? 0
        guard large == 0 else {
            throw Unusable(reason: "found \(large) large objects, folded without the limit of a text's runs")
        }
    }

    /// Renames the tables with rows that must be rewritten, and makes those of the current format, inside a transaction
    /// that it begins.
    static func beginUpgrade(_ connection: Connection, from found: Int64) throws {
        try connection.begin()
        let rewritten = found == formatWithoutHashes ? tables : ["stream", "object"]
        for table in rewritten { try connection.execute("ALTER TABLE \(table) RENAME TO old_\(table)") }
        try connection.execute("DROP INDEX stream_by_sites")
        if found == formatWithoutHashes { try connection.execute("DROP INDEX event_of_stream") }
        try createTables(connection)
    }

    /// Copies the rows of the renamed tables, drops these tables, and commits.
    ///
    /// - Throws: `Unusable` unless each stream has the digest that was written with it, so that damaged rows get no
    ///   hashes.
    func finishUpgrade(from found: Int64, _ identity: Identity) throws {
        var lastEvents: [Int64: Seq] = [:]
        if found == Self.formatWithoutHashes { lastEvents = try copyUnhashed() }
        try setMeta("format", Self.format)
        let position = try StoredPosition(reading: connection)
        try forEachRow(StoredStream.columns(of: found), of: "stream NOT INDEXED") { row in
            if found > Self.formatWithoutHashes { try StoredRow.checkStream(row) }
            guard let name = StreamName(row.text(1)) else { throw Unusable(reason: "found a stream without a name") }
            let seq = position.of(name).seq
            let stored = try StoredStream.Rows(row, name, identity: identity, seq: seq, in: connection)
            let totals = try copyObjects(of: stored, from: found)
            guard totals.digest == stored.digest else { throw StoredStream.otherDigest(name) }
            try setStream(
                stored.id,
                name: name,
                head: row.bytes(2),
                digest: stored.digest,
                sites: stored.sites,
                lastEvent: lastEvents[stored.id] ?? stored.lastEvent,
                figures: StreamFigures(objects: totals.livingObjects, bytes: totals.objectBytes, atMs: stored.lastMs)
            )
        }
        for table in Self.tables { try connection.execute("DROP TABLE IF EXISTS old_\(table)") }
        try connection.commit()
    }

    private func forEachRow(_ columns: String, of table: String, _ body: (Statement) throws -> Void) throws {
        let rows = try connection.prepare("SELECT \(columns) FROM old_\(table)")
        while try rows.step() { try body(rows) }
    }

    /// Copies the rows of a stream's objects. Returns the sums over all rows of the stream.
    private func copyObjects(of stored: StoredStream.Rows, from found: Int64) throws -> FoldTotals {
        var sites = stored.loader.finish()
        var totals = FoldTotals(digest: sites.digest(), livingObjects: 0, objectBytes: 0)
        try StoredStream.forEach(.object, "old_object", of: stored.id, in: connection, format: found) { key, data in
            var row = try FoldedRow(checking: Array(key), row: data)
            let digest = row.digest()
            totals.digest &+= digest
            totals.livingObjects += row.isAlive ? 1 : 0
            totals.objectBytes += row.countedBytes
            let key = ObjectKey.stored(Array(key))
            try setObject(stored.id, key: key, data: data, digest: digest, aging: row.agingSeq)
        }
        return totals
    }

    /// Copies the rows of format 3 except streams and objects. Returns the last event of each stream by its number.
    private func copyUnhashed() throws -> [Int64: Seq] {
        try forEachRow("name, value", of: "meta") { try setMeta($0.text(0), $0.integer(1)) }
        var lastEvents: [Int64: Seq] = [:]
        try forEachRow("stream, first, last, data", of: "event ORDER BY last") { row in
            let (stream, last) = (row.integer(0), row.integer(2))
            let before = lastEvents.updateValue(last, forKey: stream) ?? .none
            try addEvents(stream, first: row.integer(1), last: last, before: before, data: row.bytes(3))
        }
        try setMeta("barrier", lastEvents[Self.barriers] ?? .none)
        try forEachRow("stream, key, data", of: "site") { row in
            guard let site = StoredStream.site(of: row.bytes(1)) else { throw Unusable(reason: "found a bad site key") }
            try setSite(row.integer(0), site, data: row.bytes(2))
        }
        return lastEvents
    }
}
