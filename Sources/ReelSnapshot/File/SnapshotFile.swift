import ReelCore
import ReelLog
import ReelSQLite

/// The SQLite file of one partition: the streams' rows, their last events, and the next seq to fold. Position and data
/// are written in one transaction.
///
/// | table | row |
/// | --- | --- |
/// | `meta` | the epoch and partition, `next`, the hash of the last record, and the effect of the barriers |
/// | `stream` | a stream's number, name, head, digest, and figures for lists |
/// | `object` | an object or a tombstone of a stream, as the fold stores it, with its digest and `agingSeq` |
/// | `site` | a site of a stream, as the fold stores it |
/// | `event` | consecutive events of one stream, by the seq of the last one; and each barrier |
/// | `waiting` | a stream with events that wait for their turn, by its name, and its next seq to fold |
///
/// The last column of each row, or in `stream` the seventh, is its hash (`StoredRow`).
///
/// The log can restore all of it, so a commit does not wait for the disk. Only one thread may use it.
final class SnapshotFile {
    /// The current format of the tables and rows. Older formats are upgraded; a file of any other format is set aside.
    static let format: Int64 = 7

    /// The tables that each format has.
    static let tables = ["meta", "stream", "object", "site", "event"]

    /// The stream number under which the index holds barriers.
    static let barriers: Int64 = 0

    /// The name of the `meta` row with the first seq from which on the index holds every event and barrier. An earlier
    /// version used the name `events` for a row that covered events only.
    static let indexBegin = "index"

    /// The size of a page, and of a frame in the WAL, in bytes.
    static let pageBytes = 8_192

    /// The partition that a file belongs to.
    struct Identity: Equatable {
        var epoch: Epoch
        var partition: Int
        var partitions: Int
    }

    /// The reason why a file cannot be used. The file is set aside, and a new one is made.
    struct Unusable: Error {
        /// The findings and the expectation.
        var reason: String
    }

    /// True if an error of opening, reading or writing means that the content of the file is damaged.
    static func isDamage(_ error: any Error) -> Bool {
        switch error {
        case is Unusable: true
        // `truncated` means that the start of a delta is too old. Any other such error means that a row cannot be
        // decoded.
        case let error as ReelError: error.code != .truncated
        case let error as SQLiteError: error.kind == .corrupt || error.kind == .notADatabase
        default: false
        }
    }

    let connection: Connection
    private let putMeta: Statement
    private let putStream: Statement
    let objects: ObjectStatements
    /// The number of objects that were looked up since the file was opened.
    var lookups = 0
    private let putSite: Statement
    private let deleteSite: Statement
    private let putEvents: Statement
    private let trimEvents: Statement
    private let putWaiting: Statement
    /// True if the table `waiting` may have rows.
    private var hasWaiting = true

    /// Opens the file for writing, or makes it.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - identity: The partition that the file must belong to.
    ///   - number: The number of logs that were the current one before this log.
    ///   - willUpgrade: Called before the rows of a file of an older format are rewritten, which takes a while.
    /// - Throws: `Unusable` if the file is damaged or belongs to another partition.
    init(path: String, identity: Identity, number: Int = 0, willUpgrade: () -> Void = {}) throws {
        connection = try Connection(path: path, mode: .create)
        try connection.execute("PRAGMA page_size = \(Self.pageBytes)")
        try connection.useWAL(.normal)
        try connection.execute("PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY")
        let isNew = try connection.integer("SELECT count(*) FROM sqlite_schema") == 0
        let found = isNew ? Self.format : try Self.verify(connection, identity)
        let isOld = found < Self.format
        if found <= Self.formatWithoutFigures { try Self.checkRuns(in: connection) }
        if isNew {
            try connection.begin()
            try Self.createTables(connection)
        } else if isOld {
            willUpgrade()
            try Self.beginUpgrade(connection, from: found)
        } else {
            try Self.verifyStreams(connection)
        }
        putMeta = try connection.prepare("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)")
        putStream = try connection.prepare(
            """
            INSERT INTO stream VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET head = excluded.head, digest = excluded.digest, sites = excluded.sites,
                event = excluded.event, hash = excluded.hash, objects = excluded.objects, bytes = excluded.bytes,
                at = excluded.at
            """
        )
        objects = try ObjectStatements(connection)
        putSite = try connection.prepare(
            """
            INSERT INTO site VALUES (?, ?, ?, ?)
            ON CONFLICT (stream, key) DO UPDATE SET data = excluded.data, hash = excluded.hash
            """
        )
        deleteSite = try connection.prepare("DELETE FROM site WHERE stream = ? AND key = ?")
        putEvents = try connection.prepare("INSERT OR REPLACE INTO event VALUES (?, ?, ?, ?, ?, ?)")
        trimEvents = try connection.prepare("DELETE FROM event WHERE last < ?")
        putWaiting = try connection.prepare("INSERT INTO waiting VALUES (?, ?, ?)")
        if isNew { try describe(identity, number) } else if isOld { try finishUpgrade(from: found, identity) }
    }

    // MARK: Opening

    /// Makes the tables that are missing. Inside a transaction.
    static func createTables(_ connection: Connection) throws(SQLiteError) {
        try connection.execute(
            """
            CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value, hash INTEGER NOT NULL) WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS stream (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, head BLOB NOT NULL,
                digest INTEGER NOT NULL, sites INTEGER NOT NULL, event INTEGER NOT NULL, hash INTEGER NOT NULL,
                objects INTEGER, bytes INTEGER, at INTEGER);
            CREATE INDEX IF NOT EXISTS stream_by_sites ON stream (sites);
            CREATE TABLE IF NOT EXISTS object (stream INTEGER, key BLOB, digest INTEGER NOT NULL, aging INTEGER,
                data BLOB NOT NULL, hash INTEGER NOT NULL, PRIMARY KEY (stream, key)) WITHOUT ROWID;
            CREATE INDEX IF NOT EXISTS object_by_aging ON object (stream, aging, key) WHERE aging IS NOT NULL;
            CREATE TABLE IF NOT EXISTS site (stream INTEGER, key BLOB, data BLOB NOT NULL, hash INTEGER NOT NULL,
                PRIMARY KEY (stream, key)) WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS event (last INTEGER PRIMARY KEY, stream INTEGER NOT NULL, first INTEGER NOT NULL,
                before INTEGER NOT NULL, data BLOB NOT NULL, hash INTEGER NOT NULL);
            CREATE INDEX IF NOT EXISTS event_of_stream ON event (stream, last);
            CREATE TABLE IF NOT EXISTS waiting (name TEXT PRIMARY KEY, next INTEGER NOT NULL,
                hash INTEGER NOT NULL) WITHOUT ROWID;
            """
        )
    }

    /// Writes the identity of a new file, and commits.
    private func describe(_ identity: Identity, _ number: Int) throws {
        try setMeta("format", Self.format)
        try setMeta("epoch", Int64(bitPattern: identity.epoch.value))
        try setMeta("partition", Int64(identity.partition))
        try setMeta("partitions", Int64(identity.partitions))
        try setMeta("next", 0)
        try setMeta("number", Int64(number))
        try connection.commit()
    }

    /// Throws `Unusable` unless each stream has its hash and is found by its name. A stream that is not found would be
    /// folded from scratch, and a damaged number might be given to another stream.
    private static func verifyStreams(_ connection: Connection) throws {
        let rows = try connection.prepare("SELECT \(StoredRow.streamColumns) FROM stream NOT INDEXED")
        while try rows.step() { try StoredRow.checkStream(rows) }
        let lost = try connection.integer(
            """
            SELECT count(*) FROM stream AS row NOT INDEXED
            WHERE id IS NOT (SELECT id FROM stream INDEXED BY sqlite_autoindex_stream_1 WHERE name = row.name)
            """
        )
        guard lost == 0 else { throw Unusable(reason: "the index of the streams' names is damaged") }
    }

    /// Returns the format of the file. Throws `Unusable` unless it is the file of this partition, in the current format
    /// or in one that can be upgraded.
    @discardableResult
    static func verify(_ connection: Connection, _ identity: Identity) throws -> Int64 {
        let meta = try StoredMeta(reading: connection)
        let hashed = [format, formatWithoutDigests, formatWithoutTurns, formatWithoutFigures]
        let known = meta.isHashed ? hashed : [formatWithoutHashes]
        guard let found = meta["format"], known.contains(found) else {
            let found = meta["format"].map { "\($0)" } ?? "none"
            throw Unusable(reason: "found format \(found), expected \(formatWithoutHashes) to \(format)")
        }
        let owner = Identity(
            epoch: Epoch(UInt64(bitPattern: meta["epoch"] ?? 0)),
            partition: Int(meta["partition"] ?? -1),
            partitions: Int(meta["partitions"] ?? -1)
        )
        guard owner == identity else {
            throw Unusable(
                reason: "found epoch \(owner.epoch), partition \(owner.partition) of \(owner.partitions);"
                    + " expected epoch \(identity.epoch), partition \(identity.partition) of \(identity.partitions)"
            )
        }
        guard let next = meta["next"], next >= 0 else { throw Unusable(reason: "the file has no position") }
        return found
    }

    // MARK: Writing, inside a transaction

    func setMeta(_ name: String, _ value: Int64) throws {
        var name = name
        putMeta.bind(1, name)
        putMeta.bind(2, value)
        putMeta.bind(3, name.withUTF8 { StoredRow.meta(Bytes($0), value) })
        try putMeta.run()
    }

    /// Writes the streams that wait, and replaces those written before.
    func setWaiting(_ waiting: [StreamName: Seq]) throws {
        if hasWaiting { try connection.execute("DELETE FROM waiting") }
        for (name, next) in waiting {
            var text = name.description
            putWaiting.bind(1, text)
            putWaiting.bind(2, next)
            putWaiting.bind(3, text.withUTF8 { StoredRow.waiting(Bytes($0), next) })
            try putWaiting.run()
        }
        hasWaiting = !waiting.isEmpty
    }

    func setStream(
        _ id: Int64,
        name: StreamName,
        head: Bytes,
        digest: UInt64,
        sites: Int,
        lastEvent: Seq,
        figures: StreamFigures?
    ) throws {
        var text = name.description
        let (digest, sites) = (Int64(bitPattern: digest), Int64(sites))
        let hash = text.withUTF8 { name in
            StoredRow.stream(
                id,
                name: Bytes(name),
                head: head,
                digest: digest,
                sites: sites,
                lastEvent: lastEvent,
                figures: figures
            )
        }
        putStream.bind(1, id)
        putStream.bind(2, text)
        putStream.bind(3, lending: head)
        putStream.bind(4, digest)
        putStream.bind(5, sites)
        putStream.bind(6, lastEvent)
        putStream.bind(7, hash)
        putStream.bind(8, figures.map { Int64($0.objects) })
        putStream.bind(9, figures.map { Int64($0.bytes) })
        putStream.bind(10, figures?.atMs)
        try putStream.run()
    }

    func setSite(_ stream: Int64, _ site: Site, data: Bytes) throws {
        try StoredStream.key(of: site).withUnsafeBytes { key in
            putSite.bind(1, stream)
            putSite.bind(2, lending: key)
            putSite.bind(3, lending: data)
            putSite.bind(4, StoredRow.entry(.site, stream, key, data))
            try putSite.run()
        }
    }

    func deleteSite(_ stream: Int64, _ site: Site) throws {
        deleteSite.bind(1, stream)
        deleteSite.bind(2, StoredStream.key(of: site))
        try deleteSite.run()
    }

    /// Writes consecutive events of a stream. `before` is the last seq of the stream's previous chunk.
    func addEvents(_ stream: Int64, _ chunk: EventChunk, behind before: Seq) throws {
        try chunk.bytes.withUnsafeBytes {
            try addEvents(stream, first: chunk.first, last: chunk.last, before: before, data: $0)
        }
    }

    /// Writes a chunk in its stored form.
    func addEvents(_ stream: Int64, first: Seq, last: Seq, before: Seq, data: Bytes) throws {
        putEvents.bind(1, last)
        putEvents.bind(2, stream)
        putEvents.bind(3, first)
        putEvents.bind(4, before)
        putEvents.bind(5, lending: data)
        putEvents.bind(6, StoredRow.events(stream, first: first, last: last, before: before, data))
        try putEvents.run()
    }

    /// Deletes the chunks that end before a seq.
    func trimEvents(before seq: Seq) throws {
        trimEvents.bind(1, seq)
        try trimEvents.run()
    }
}
