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
    /// The digest of the state that the rows describe.
    let digest: UInt64
    var fold: Fold

    /// Reads a whole stream, for a tool that holds the state in memory. Nil if the stream has no row: no event or seed
    /// of it is folded.
    ///
    /// - Parameters:
    ///   - seq: The position of the stream in the file.
    ///   - format: The format of the file.
    /// - Throws: `Unusable` if the rows are damaged.
    init?(
        _ name: StreamName,
        identity: SnapshotFile.Identity,
        seq: Seq,
        in connection: Connection,
        format: Int64
    ) throws {
        guard let row = try Self.row(of: name, in: connection, format: format) else { return nil }
        var rows = try Rows(row, name, identity: identity, seq: seq, in: connection, format: format)
        if format == SnapshotFile.format {
            let objects = try ObjectRows(of: rows.id, in: connection)
            while let object = try objects.next() {
                try object.key.withUnsafeBytes { try rows.loader.add(objectKey: $0, row: object.data) }
            }
        } else {
            try Self.forEach(.object, of: rows.id, in: connection, format: format) { key, data in
                try rows.loader.add(objectKey: key, row: data)
            }
        }
        self.init(rows, rows.loader.finish())
        guard fold.digest() == rows.digest else { throw Self.otherDigest(name) }
    }

    /// Reads a stream without its objects, as of `seq`, the position of the stream in the file. Nil if the stream has
    /// no row. The digest is not compared, since it covers the objects.
    init?(sitesOf name: StreamName, identity: SnapshotFile.Identity, seq: Seq, in connection: Connection) throws {
        guard let row = try Self.row(of: name, in: connection) else { return nil }
        let rows = try Rows(row, name, identity: identity, seq: seq, in: connection)
        self.init(rows, rows.loader.finish())
        try checkSites(rows, name)
    }

    /// The size of the objects up to which a stream is compared with its digest before it is folded, in bytes. The rows
    /// of a larger one are checked one by one, because the comparison reads all of them.
    private static let comparedBytes = 1 << 20

    /// Reads a stream whose fold loads its objects from the file. Nil if the stream has no row.
    ///
    /// - Parameters:
    ///   - seq: The position of the stream in the file.
    ///   - source: Returns the rows of the stream's objects, by the number of the stream.
    /// - Throws: `Unusable` if the rows are damaged.
    init?(
        _ name: StreamName,
        identity: SnapshotFile.Identity,
        seq: Seq,
        in connection: Connection,
        source: (Int64) -> any ObjectSource
    ) throws {
        guard let row = try Self.row(of: name, in: connection) else { return nil }
        guard let figures = StoredRow.figures(row) else {
            throw SnapshotFile.Unusable(reason: "the row of stream \(name) has no figures")
        }
        let rows = try Rows(row, name, identity: identity, seq: seq, in: connection, source: source(row.integer(0)))
        // A damaged key can move a row of a site out of the stream.
        for end in [[], [UInt8](repeating: 0xFF, count: 17)] {
            try StoredRow.checkAbsence(ofSite: end, of: rows.id, connection)
        }
        let totals = FoldTotals(digest: rows.digest, livingObjects: figures.objects, objectBytes: figures.bytes)
        self.init(rows, rows.loader.finish(totals: totals))
        try checkSites(rows, name)
        guard figures.bytes <= Self.comparedBytes else { return }
        var sum: UInt64 = 0
        let objects = try ObjectRows(of: id, in: connection)
        while let object = try objects.next() { sum &+= object.digest }
        guard sum == fold.digestOfObjects() else { throw Self.otherDigest(name) }
    }

    private init(_ rows: Rows, _ fold: Fold) {
        (id, lastEvent, lastMs, digest, self.fold) = (rows.id, rows.lastEvent, rows.lastMs, rows.digest, fold)
    }

    /// Returns the error of a stream whose rows lack something, or hold something else.
    static func otherDigest(_ name: StreamName) -> SnapshotFile.Unusable {
        SnapshotFile.Unusable(reason: "the rows of stream \(name) do not have the digest written with them")
    }

    private func checkSites(_ rows: Rows, _ name: StreamName) throws {
        guard fold.liveSites == rows.sites else {
            throw SnapshotFile.Unusable(
                reason: "found \(fold.liveSites) sites of stream \(name) that have not ended, expected \(rows.sites)"
            )
        }
    }

    /// The data of a stream in the file, without its objects.
    struct Rows {
        let id: Int64
        let lastEvent: Seq
        let lastMs: Int64?
        let digest: UInt64
        /// The number of sites that have not ended.
        let sites: Int
        var loader: FoldLoader

        /// `row`: a row with the columns of the format, compared with its hash.
        init(
            _ row: Statement,
            _ name: StreamName,
            identity: SnapshotFile.Identity,
            seq: Seq,
            in connection: Connection,
            format: Int64 = SnapshotFile.format,
            source: (any ObjectSource)? = nil
        ) throws {
            id = row.integer(0)
            digest = UInt64(bitPattern: row.integer(3))
            sites = Int(row.integer(4))
            lastEvent = row.integer(5)
            lastMs = StoredRow.figures(row)?.atMs
            var loader = try FoldLoader(
                stream: name,
                partition: identity.partition,
                epoch: identity.epoch,
                seq: seq,
                head: row.bytes(2),
                source: source
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

    /// Returns the columns of a stream's row that take the places of `StoredRow.streamColumns`.
    static func columns(of format: Int64) -> String {
        switch format {
        case SnapshotFile.formatWithoutHashes: "id, name, head, digest, sites, -1, NULL, NULL, NULL, NULL"
        case SnapshotFile.formatWithoutFigures: StoredRow.streamColumnsWithoutFigures
        default: StoredRow.streamColumns
        }
    }

    /// Returns the row of a stream with `StoredRow.streamColumns`, compared with its hash; nil: the stream has no row.
    static func row(of name: StreamName, in connection: Connection, format: Int64 = SnapshotFile.format) throws
        -> Statement?
    {
        let row = try connection.prepare("SELECT \(columns(of: format)) FROM stream WHERE name = ?")
        row.bind(1, name.description)
        let isThere = try row.step()
        if format > SnapshotFile.formatWithoutHashes {
            if isThere {
                try StoredRow.checkStream(row)
            } else {
                try StoredRow.checkAbsence(of: name, in: connection, format: format)
            }
        }
        return isThere ? row : nil
    }

    /// Calls `body` with each site of a stream, or each object before format 7, compared with its hash.
    ///
    /// - Parameters:
    ///   - table: The table that the hashes of the rows name.
    ///   - name: The name of the table in the file; nil: the usual one.
    ///   - stream: The number of the stream.
    ///   - connection: The connection, inside a transaction.
    ///   - format: The format of the rows.
    ///   - body: Receives the key and the bytes of each row.
    static func forEach(
        _ table: RowHash.Table,
        _ name: String? = nil,
        of stream: Int64,
        in connection: Connection,
        format: Int64,
        _ body: (_ key: Bytes, _ data: Bytes) throws -> Void
    ) throws {
        let isHashed = format > SnapshotFile.formatWithoutHashes
        let columns = isHashed ? "key, data, hash" : "key, data"
        let rows = try connection.prepare("SELECT \(columns) FROM \(name ?? "\(table)") WHERE stream = ?")
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
