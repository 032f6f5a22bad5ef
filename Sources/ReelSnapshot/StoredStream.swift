import ReelCore
import ReelLog
import ReelSQLite

/// A stream that was read from a partition's file into a fold.
struct StoredStream {
    /// The stream's number in the file.
    let id: Int64
    /// The last seq of its last chunk in the index of events; −1: there is none.
    let lastEvent: Seq
    /// The gateway's clock in the last event, in milliseconds since 1970; nil: not known.
    let lastMs: Int64?
    /// The bytes of the rows of its objects; 0 if these were not read.
    let rowBytes: Int
    var fold: Fold

    /// Reads a whole stream. Nil if the stream has no row: no event or seed of it is folded.
    ///
    /// - Parameters:
    ///   - seq: The position of the stream in the file.
    ///   - listsChanges: True if the fold must list its changes.
    ///   - format: The format of the file.
    /// - Throws: `Unusable` if the rows are damaged.
    init?(
        _ name: StreamName,
        identity: SnapshotFile.Identity,
        seq: Seq,
        in connection: Connection,
        listsChanges: Bool = false,
        format: Int64 = SnapshotFile.format
    ) throws {
        guard
            var rows = try Rows(
                name,
                identity: identity,
                seq: seq,
                in: connection,
                listsChanges: listsChanges,
                format: format
            )
        else { return nil }
        id = rows.id
        (lastEvent, lastMs) = (rows.lastEvent, rows.lastMs)
        var bytes = 0
        try Self.forEach(.object, of: id, in: connection, format: format) { key, data in
            try rows.loader.add(objectKey: key, row: data)
            bytes += data.count
        }
        rowBytes = bytes
        fold = rows.loader.finish()
        let found = fold.digest()
        guard found == rows.digest else {
            throw SnapshotFile.Unusable(reason: "the rows of stream \(name) do not have the digest written with them")
        }
    }

    /// Reads a stream without its objects, as of `seq`, the position of the stream in the file. Nil if the stream has
    /// no row. The digest is not compared, since it covers the objects.
    init?(sitesOf name: StreamName, identity: SnapshotFile.Identity, seq: Seq, in connection: Connection) throws {
        guard
            let rows = try Rows(
                name,
                identity: identity,
                seq: seq,
                in: connection,
                listsChanges: false,
                format: SnapshotFile.format
            )
        else { return nil }
        id = rows.id
        (lastEvent, lastMs) = (rows.lastEvent, rows.lastMs)
        rowBytes = 0
        fold = rows.loader.finish()
        guard fold.liveSites == rows.sites else {
            throw SnapshotFile.Unusable(
                reason: "found \(fold.liveSites) sites of stream \(name) that have not ended, expected \(rows.sites)"
            )
        }
    }

    /// The data of a stream in the file, without its objects.
    private struct Rows {
        let id: Int64
        let lastEvent: Seq
        let lastMs: Int64?
        let digest: UInt64
        /// The number of sites that have not ended.
        let sites: Int
        var loader: FoldLoader

        init?(
            _ name: StreamName,
            identity: SnapshotFile.Identity,
            seq: Seq,
            in connection: Connection,
            listsChanges: Bool,
            format: Int64
        ) throws {
            guard let row = try StoredStream.row(of: name, in: connection, format: format) else { return nil }
            id = row.integer(0)
            digest = UInt64(bitPattern: row.integer(3))
            sites = Int(row.integer(4))
            lastEvent = row.integer(5)
            lastMs = format > SnapshotFile.formatWithoutFigures ? StoredRow.figures(row)?.atMs : nil
            var loader = try FoldLoader(
                stream: name,
                partition: identity.partition,
                epoch: identity.epoch,
                seq: seq,
                head: row.bytes(2),
                listsChanges: listsChanges
            )
            try StoredStream.forEach(.site, of: id, in: connection, format: format) { key, data in
                guard let site = StoredStream.site(of: key) else {
                    throw SnapshotFile.Unusable(reason: "found a site's key that is no UUID in stream \(name)")
                }
                try loader.add(site: site, row: data)
            }
            self.loader = loader
        }
    }

    /// Returns the row of a stream with `StoredRow.streamColumns`, compared with its hash; nil: the stream has no row.
    static func row(of name: StreamName, in connection: Connection, format: Int64 = SnapshotFile.format) throws
        -> Statement?
    {
        let isHashed = format > SnapshotFile.formatWithoutHashes
        let columns =
            switch format {
            case SnapshotFile.formatWithoutHashes: "id, name, head, digest, sites, -1"
            case SnapshotFile.formatWithoutFigures: StoredRow.streamColumnsWithoutFigures
            default: StoredRow.streamColumns
            }
        let row = try connection.prepare("SELECT \(columns) FROM stream WHERE name = ?")
        row.bind(1, name.description)
        let isThere = try row.step()
        if isHashed {
            if isThere {
                try StoredRow.checkStream(row)
            } else {
                try StoredRow.checkAbsence(of: name, in: connection, format: format)
            }
        }
        return isThere ? row : nil
    }

    /// Calls `body` with each object or site of a stream, compared with its hash.
    private static func forEach(
        _ table: RowHash.Table,
        of stream: Int64,
        in connection: Connection,
        format: Int64,
        _ body: (_ key: Bytes, _ data: Bytes) throws -> Void
    ) throws {
        let isHashed = format > SnapshotFile.formatWithoutHashes
        let rows = try connection.prepare("SELECT key, data\(isHashed ? ", hash" : "") FROM \(table) WHERE stream = ?")
        rows.bind(1, stream)
        while try rows.step() {
            let (key, data) = (rows.bytes(0), rows.bytes(1))
            if isHashed {
                let hash = StoredRow.entry(table, stream, key, data)
                try StoredRow.check(hash, rows, 2, "of \(table == .site ? "a site" : "an object") of stream \(stream)")
            }
            try body(key, data)
        }
    }

    /// Returns the key of an object's row: model, a zero byte, id, each as between the quotes of canonical JSON.
    static func key(model: String, id: String) -> [UInt8] {
        var key: [UInt8] = []
        key.append(quoted: model)
        key[0] = 0
        key[key.count - 1] = 0
        key.removeFirst()
        var quoted: [UInt8] = []
        quoted.append(quoted: id)
        return key + quoted.dropFirst().dropLast()
    }

    /// Returns the key of a site's row: the 16 bytes of the UUID.
    static func key(of site: Site) -> [UInt8] {
        withUnsafeBytes(of: (site.high.bigEndian, site.low.bigEndian)) { Array($0) }
    }

    static func site(of key: Bytes) -> Site? {
        guard key.count == 16 else { return nil }
        return Site(
            high: UInt64(bigEndian: key.loadUnaligned(as: UInt64.self)),
            low: UInt64(bigEndian: key.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        )
    }
}
