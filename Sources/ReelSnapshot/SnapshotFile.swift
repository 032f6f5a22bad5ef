import ReelCore
import ReelSQLite

/// The SQLite file of one partition: the streams' rows, their last events, and the next seq to fold. Position and data
/// are written in one transaction.
///
/// | table | row |
/// | --- | --- |
/// | `meta` | whose file it is, `next`, the hash of the last record, and what the barriers have said |
/// | `stream` | a stream's number, its name, what is known of it as a whole, its digest, and how many sites it has |
/// | `object` | an object or a tombstone of a stream, as the fold stores it |
/// | `site` | a site of a stream, as the fold stores it |
/// | `event` | events of one stream that follow each other, by the seq of the last one; and each barrier |
///
/// All of it can be made anew from the log, so a commit does not wait for the disk. It belongs to one thread at a time.
final class SnapshotFile {
    /// The form of the tables and rows; a file of another form is put aside.
    static let format: Int64 = 3

    /// Stands in place of a stream's number where a barrier stands in the index.
    static let barriers: Int64 = 0

    /// Where it says from which seq on the index has every event and barrier. Under `events` an earlier version said
    /// that of events only.
    static let indexBegin = "index"

    /// The size of a page, also of a frame in the WAL.
    static let pageBytes = 8_192

    /// Whose file it is.
    struct Identity: Equatable {
        var epoch: Epoch
        var partition: Int
        var partitions: Int
    }

    /// Why a file cannot be used. It is put aside and made anew.
    struct Unusable: Error {
        /// What was found and what was expected.
        var reason: String
    }

    /// Whether an error of opening, reading or writing says that the file is not as it was written.
    static func isDamage(_ error: any Error) -> Bool {
        switch error {
        case is Unusable: true
        // A row that cannot be read back; that a delta is asked from too far back is the only other one.
        case let error as ReelError: error.code != .truncated
        case let error as SQLiteError: error.kind == .corrupt || error.kind == .notADatabase
        default: false
        }
    }

    let connection: Connection
    private let putMeta: Statement
    private let putStream: Statement
    private let putObject: Statement
    private let deleteObject: Statement
    private let putSite: Statement
    private let deleteSite: Statement
    private let putEvents: Statement
    private let trimEvents: Statement

    /// Opens the file for writing, or makes it, for the log of this number. Throws `Unusable` where it is damaged or
    /// somebody else's.
    init(path: String, identity: Identity, number: Int = 0) throws {
        connection = try Connection(path: path, mode: .create, busyMs: 2_000)
        try connection.execute("PRAGMA page_size = \(Self.pageBytes)")
        try connection.useWAL(.normal)
        try connection.execute("PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY")
        if try connection.integer("SELECT count(*) FROM sqlite_schema") == 0 {
            try Self.create(connection, identity, number)
        } else {
            try Self.verify(connection, identity)
            try Self.verifyNames(connection)
        }
        putMeta = try connection.prepare("INSERT OR REPLACE INTO meta VALUES (?, ?)")
        putStream = try connection.prepare(
            """
            INSERT INTO stream VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET head = excluded.head, digest = excluded.digest, sites = excluded.sites
            """
        )
        putObject = try connection.prepare(Self.put("object"))
        deleteObject = try connection.prepare("DELETE FROM object WHERE stream = ? AND key = ?")
        putSite = try connection.prepare(Self.put("site"))
        deleteSite = try connection.prepare("DELETE FROM site WHERE stream = ? AND key = ?")
        putEvents = try connection.prepare("INSERT OR REPLACE INTO event VALUES (?, ?, ?, ?)")
        trimEvents = try connection.prepare("DELETE FROM event WHERE last < ?")
    }

    /// Writes a row in place where it is there already, which costs less than to replace it.
    private static func put(_ table: String) -> String {
        "INSERT INTO \(table) VALUES (?, ?, ?) ON CONFLICT (stream, key) DO UPDATE SET data = excluded.data"
    }

    // MARK: Opening

    private static func create(_ connection: Connection, _ identity: Identity, _ number: Int) throws {
        try connection.transaction { () throws(SQLiteError) in
            try connection.execute(
                """
                CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
                CREATE TABLE stream (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, head BLOB NOT NULL,
                    digest INTEGER NOT NULL, sites INTEGER NOT NULL);
                CREATE INDEX stream_by_sites ON stream (sites);
                CREATE TABLE object (stream INTEGER, key BLOB, data BLOB NOT NULL, PRIMARY KEY (stream, key))
                    WITHOUT ROWID;
                CREATE TABLE site (stream INTEGER, key BLOB, data BLOB NOT NULL, PRIMARY KEY (stream, key))
                    WITHOUT ROWID;
                CREATE TABLE event (last INTEGER PRIMARY KEY, stream INTEGER NOT NULL, first INTEGER NOT NULL,
                    data BLOB NOT NULL);
                CREATE INDEX event_of_stream ON event (stream, last);
                """
            )
            let insert = try connection.prepare("INSERT INTO meta VALUES (?, ?)")
            for (name, value) in [
                ("format", format), ("epoch", Int64(bitPattern: identity.epoch.value)),
                ("partition", Int64(identity.partition)), ("partitions", Int64(identity.partitions)), ("next", 0),
                ("number", Int64(number)),
            ] {
                insert.bind(1, name)
                insert.bind(2, value)
                try insert.run()
            }
        }
    }

    /// Throws `Unusable` unless each stream is found by its name: one that is not would be begun anew.
    private static func verifyNames(_ connection: Connection) throws {
        let lost = try connection.integer(
            """
            SELECT count(*) FROM stream AS row NOT INDEXED
            WHERE id IS NOT (SELECT id FROM stream INDEXED BY sqlite_autoindex_stream_1 WHERE name = row.name)
            """
        )
        guard lost == 0 else { throw Unusable(reason: "the index of the streams' names is damaged") }
    }

    /// Throws `Unusable` unless it is the file of this partition.
    static func verify(_ connection: Connection, _ identity: Identity) throws {
        func meta(_ name: String) throws(SQLiteError) -> Int64? {
            let statement = try connection.prepare("SELECT value FROM meta WHERE name = ?")
            statement.bind(1, name)
            return try statement.step() && !statement.isNull(0) ? statement.integer(0) : nil
        }
        let foundFormat = try meta("format")
        guard foundFormat == format else {
            throw Unusable(reason: "found format \(foundFormat.map { "\($0)" } ?? "none"), expected \(format)")
        }
        let found = Identity(
            epoch: Epoch(UInt64(bitPattern: try meta("epoch") ?? 0)),
            partition: Int(try meta("partition") ?? -1),
            partitions: Int(try meta("partitions") ?? -1)
        )
        guard found == identity else {
            throw Unusable(
                reason: "found epoch \(found.epoch), partition \(found.partition) of \(found.partitions);"
                    + " expected epoch \(identity.epoch), partition \(identity.partition) of \(identity.partitions)"
            )
        }
        guard let next = try meta("next"), next >= 0 else { throw Unusable(reason: "it has no position") }
    }

    // MARK: Writing, inside a transaction

    func setMeta(_ name: String, _ value: Int64) throws {
        putMeta.bind(1, name)
        putMeta.bind(2, value)
        try putMeta.run()
    }

    func setStream(_ id: Int64, name: StreamName, head: Bytes, digest: UInt64, sites: Int) throws {
        putStream.bind(1, id)
        putStream.bind(2, name.description)
        putStream.bind(3, lending: head)
        putStream.bind(4, Int64(bitPattern: digest))
        putStream.bind(5, Int64(sites))
        try putStream.run()
    }

    func setObject(_ stream: Int64, key: [UInt8], data: Bytes) throws {
        try Self.put(putObject, stream, key, data)
    }

    func deleteObject(_ stream: Int64, key: [UInt8]) throws {
        try Self.delete(deleteObject, stream, key)
    }

    func setSite(_ stream: Int64, _ site: Site, data: Bytes) throws {
        try Self.put(putSite, stream, StoredStream.key(of: site), data)
    }

    func deleteSite(_ stream: Int64, _ site: Site) throws {
        try Self.delete(deleteSite, stream, StoredStream.key(of: site))
    }

    private static func put(_ statement: Statement, _ stream: Int64, _ key: [UInt8], _ data: Bytes) throws {
        try key.withUnsafeBytes { key in
            statement.bind(1, stream)
            statement.bind(2, lending: key)
            statement.bind(3, lending: data)
            try statement.run()
        }
    }

    private static func delete(_ statement: Statement, _ stream: Int64, _ key: [UInt8]) throws {
        statement.bind(1, stream)
        statement.bind(2, key)
        try statement.run()
    }

    /// Writes events of a stream that follow each other.
    func addEvents(_ stream: Int64, first: Seq, last: Seq, data: Bytes) throws {
        putEvents.bind(1, last)
        putEvents.bind(2, stream)
        putEvents.bind(3, first)
        putEvents.bind(4, lending: data)
        try putEvents.run()
    }

    /// The seq from which on the index has every event and barrier; nil: there is no index yet.
    func oldestEvent() throws -> Seq? { try Self.oldestEvent(in: connection) }

    static func oldestEvent(in connection: Connection) throws -> Seq? {
        try connection.integer("SELECT value FROM meta WHERE name = '\(indexBegin)'")
    }

    /// Forgets events whose chunk ends before a seq.
    func trimEvents(before seq: Seq) throws {
        trimEvents.bind(1, seq)
        try trimEvents.run()
    }
}
