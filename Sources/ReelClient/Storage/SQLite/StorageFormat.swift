internal import ReelCore
internal import ReelSQLite

/// The tables of an SQLite storage, and the upgrade from earlier formats.
///
/// `pair` holds the map. The one row of `mark` states that a client has the file open: then a WAL belongs to it.
enum StorageFormat {
    /// The format's number, in `user_version` of the file.
    static let number: Int64 = 4

    /// The `application_id` that marks the file as a client's: "Reel".
    private static let application: Int64 = 0x5265_656C

    /// Prepares the file for use: creates the tables, or upgrades them, and marks the file as open. Returns true if the
    /// last commits are lost.
    ///
    /// It uses the file alone, so it also finds a user that does not know the lock file: an earlier version of the
    /// client, or one that has opened the file by another name. It does not wait for such a user. An error leaves the
    /// content as it was.
    static func prepare(_ files: StorageFiles, _ upgrade: SQLiteStorage.Upgrade?) throws(ReelError) -> Bool {
        do {
            let connection = try Connection(path: files.path, mode: .create, busyMs: 0)
            try connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            let format = try check(connection)
            guard format == 0 || format == number || upgrade != nil else {
                throw SQLiteError.notADatabase("found format \(format), expected \(number)")
            }
            try checkSize(files, connection)
            try connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            try connection.useWAL(.full)
            try connection.begin()
            // An error ends the connection, and with it the transaction.
            let wasInUse = try isInUse(connection, format)
            if format != number { try create(connection, from: format, upgrade) }
            try markInUse(connection)
            try connection.commit()
            // A file of an earlier format can shrink only after it was written again. It is used as it is if there is
            // no room for that.
            if try connection.integer("PRAGMA auto_vacuum") == 0 { try? connection.execute("VACUUM") }
            // From now on the file itself states that a WAL belongs to it.
            _ = try? connection.checkpoint(.passive)
            return wasInUse && !files.hadWAL
        } catch let error as SQLiteError {
            throw ReelError(error, doing: "open \(files.path)")
        } catch let error as ReelError {
            throw error
        } catch {
            throw ReelError(.internal, "the device's storage, upgrade of \(files.path): \(error)")
        }
    }

    /// Throws `store_damaged` if the file was cut within its last page. SQLite reads the missing part as zeros.
    private static func checkSize(_ files: StorageFiles, _ connection: Connection) throws {
        // A WAL may have that page. What a killed process had begun to write was rolled back by the first read.
        guard !files.hadWAL, let pageBytes = try connection.integer("PRAGMA page_size"),
            let bytes = FileLook(files.path)?.size, !bytes.isMultiple(of: pageBytes)
        else { return }
        throw ReelError(
            .storeDamaged,
            "the device's storage: found \(bytes) bytes in \(files.path), expected a multiple of"
                + " \(pageBytes): the file was cut"
        )
    }

    /// Marks the file as open, and writes to the WAL in any case: SQLite does not write a value that is there already.
    static func markInUse(_ connection: Connection) throws(SQLiteError) {
        try connection.execute("UPDATE mark SET in_use = 0; UPDATE mark SET in_use = 1")
    }

    /// Returns the file's format, 0 for an empty one. Throws an error of kind `notADatabase` if the file is another
    /// program's, or of a newer format. Changes nothing.
    private static func check(_ connection: Connection) throws(SQLiteError) -> Int64 {
        let format = try connection.integer("PRAGMA user_version") ?? 0
        let application = try connection.integer("PRAGMA application_id") ?? 0
        let isStorage =
            switch format {
            case 0: try connection.integer("SELECT count(*) FROM sqlite_schema") == 0
            case 1: try connection.integer(format1Tables) == 3
            default: application == self.application
            }
        guard isStorage else {
            throw .notADatabase("found another program's tables, expected those of a device's storage")
        }
        guard (0...number).contains(format) else {
            throw .notADatabase("found format \(format), which a newer version has written; expected up to \(number)")
        }
        return format
    }

    private static let format1Tables = "SELECT count(*) FROM sqlite_schema WHERE name IN ('stream', 'outbox', 'log')"

    /// The tables of formats 1 to 3.
    private static let earlierTables = ["client", "event", "log", "object", "outbox", "site", "state", "stream"]

    /// Returns true if the file states that a client has left a WAL. Format 1 had no such mark.
    private static func isInUse(_ connection: Connection, _ format: Int64) throws(SQLiteError) -> Bool {
        switch format {
        case 0, 1: false
        case number: try connection.integer("SELECT in_use FROM mark") == 1
        default: try connection.integer("SELECT in_use FROM client WHERE row = 1") == 1
        }
    }

    private static func create(_ connection: Connection, from format: Int64, _ upgrade: SQLiteStorage.Upgrade?) throws {
        try connection.execute(
            """
            CREATE TABLE pair (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
            CREATE TABLE mark (row INTEGER PRIMARY KEY CHECK (row = 1), in_use INTEGER NOT NULL);
            INSERT INTO mark VALUES (1, 0);
            """
        )
        if format > 0, let upgrade {
            try ChangeStatements(connection).apply(try upgrade(connection, format))
            for table in earlierTables { try connection.execute("DROP TABLE IF EXISTS \(table)") }
        }
        try connection.execute("PRAGMA application_id = \(application); PRAGMA user_version = \(number)")
    }
}

extension ReelError {
    /// Creates the error for an SQLite error of a storage. `doing`: what the storage did.
    init(_ error: SQLiteError, doing: String) {
        let (code, advice): (ErrorCode, String) =
            switch error.kind {
            case .locked: (.storeBusy, "; another process, or another client of this one, has the storage open")
            case .full: (.storeFull, "; make room on the disk")
            case .notADatabase: (.storeFormat, "; the file is not a storage of this version: use another file")
            // The statement does not fit the tables, so they are not the tables that were made.
            case .corrupt, .constraint,
                .other where error.code == 1:
                (.storeDamaged, "; move the file away together with its -wal, and do not delete them")
            case .cannotOpen, .readOnly:
                (
                    .storeFailed,
                    "; its folder must be there, and this user must be able to write the file and the folder"
                )
            case .inputOutput: (.storeFailed, "; the disk, or the right to the file, must be corrected")
            case .interrupted, .other: (.internal, "")
            }
        self.init(code, "the device's storage, \(doing): \(error)\(advice)")
    }
}
