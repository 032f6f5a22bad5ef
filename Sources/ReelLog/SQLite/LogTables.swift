internal import ReelCore
internal import ReelSQLite

/// The tables of a log's file, except for reading and appending records. The file must be locked. Each method that
/// writes uses one transaction.
///
/// | table | row |
/// | --- | --- |
/// | `log` | a log: its epoch and P; the row number is part of the names of its record tables |
/// | `control` | a log that was made the current one, by its number |
/// | `deployment` | the deployment of the log of this number, and of later ones; missing in files of an older build |
/// | `file` | which file holds the log, and whether it was closed; see `FileRow` |
/// | `nodes` | a node's announcement |
/// | `records_K`, and of a later log `records_K_of_ROW` | groups of records of partition K |
struct LogTables {
    /// A log of the file.
    struct Log: Sendable {
        /// The number of its row, which is part of the names of its tables.
        var row: Int64
        var epoch: Epoch
        var partitions: Int

        /// Returns the name of a partition's table. The first log keeps the names from the time when a file had one
        /// log.
        func table(_ partition: Int) -> String {
            row == 1 ? "records_\(partition)" : "records_\(partition)_of_\(row)"
        }
    }

    /// The reason why a file cannot be used, and the advice.
    struct Unusable: Error {
        var reason: String
        var advice = LogFile.putAside
    }

    let connection: Connection

    /// "Reel" in ASCII, stored in SQLite's `application_id`.
    private static let applicationID: Int64 = 0x5265_656c
    /// The version of the tables. Version 1 has one log and no `control`; version 2 has no `file` and no hashes.
    private static let version: Int64 = 3
    static let pageSize = 8192
    static let largestPartitionCount = 1024

    /// Opens the tables of a file. Creates missing tables, and migrates an older version.
    init(_ connection: Connection) throws {
        self.connection = connection
        if try Self.areMissing(in: connection) {
            try make()
            return
        }
        let mark = try connection.integer("PRAGMA application_id") ?? 0
        let found = try connection.integer("PRAGMA user_version") ?? 0
        if try connection.integer("SELECT count(*) FROM sqlite_schema") == 0 {
            throw Unusable(
                reason: "found an SQLite file without a table, expected a log",
                advice: "if it was copied or moved without its -wal, bring that back, or restore a backup; if no log"
                    + " was ever in it, remove it"
            )
        }
        guard mark == Self.applicationID else {
            throw Unusable(
                reason: "found an SQLite database of another program, expected a log",
                advice: LogFile.otherPlace
            )
        }
        guard (1...Self.version).contains(found) else {
            throw Unusable(
                reason: "found a log's file of version \(found), expected at most \(Self.version)",
                advice: "run the build of reel that wrote it, or a newer one"
            )
        }
        if found < Self.version { try migrate(from: found) }
    }

    /// True if a file has no tables yet: it has no page.
    static func areMissing(in connection: Connection) throws(SQLiteError) -> Bool {
        try connection.integer("PRAGMA page_count") == 0
    }

    /// Creates the tables without a WAL, so a file with one page has all tables, even if a `-wal` is lost.
    private func make() throws(SQLiteError) {
        try connection.execute("PRAGMA page_size = \(Self.pageSize)")
        try connection.transaction { () throws(SQLiteError) in
            try connection.execute(
                """
                PRAGMA application_id = \(Self.applicationID);
                PRAGMA user_version = \(Self.version);
                CREATE TABLE log (epoch INTEGER NOT NULL, partitions INTEGER NOT NULL);
                CREATE TABLE nodes (id TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, role TEXT NOT NULL,
                    url TEXT NOT NULL, advertised TEXT, build TEXT NOT NULL, positions TEXT NOT NULL) WITHOUT ROWID;
                """
            )
            try addControl()
            try addFile()
            try addHashes()
        }
    }

    /// Migrates a file of an older version to this one, in one transaction.
    private func migrate(from found: Int64) throws(SQLiteError) {
        try connection.transaction { () throws(SQLiteError) in
            if found < 2 { try addControl() }
            if found < 3 {
                try addFile()
                try addHashes()
            }
            try connection.execute("PRAGMA user_version = \(Self.version)")
        }
    }

    /// Adds the table `control`. A file of version 1 has one log, which is the current one.
    private func addControl() throws(SQLiteError) {
        try connection.execute(
            """
            CREATE TABLE control (number INTEGER PRIMARY KEY, epoch INTEGER NOT NULL);
            INSERT INTO control SELECT 0, epoch FROM log;
            """
        )
    }

    /// Adds the table `file`. It is unknown whether a file of version 2 is a copy, so it counts as the original.
    private func addFile() throws(SQLiteError) {
        try connection.execute(FileRow.create)
        if let found = FileIdentity.look(at: connection.path) {
            try FileRow(identity: found.identity).write(connection)
        }
    }

    // MARK: Hashes

    /// The columns that the hash of a row of `log`, `control` or `deployment` covers: the row's number and two more.
    private static let columns: KeyValuePairs<RowHash.Table, String> = [
        .log: "rowid, epoch, partitions", .control: "number, epoch, 0", .deployment: "number, id, 0",
    ]

    private static func hash(_ table: RowHash.Table, _ row: Int64, _ first: Int64, _ second: Int64 = 0) -> Int64 {
        var hash = RowHash(of: table)
        hash.add(row)
        hash.add(first)
        hash.add(second)
        return hash.stored
    }

    /// Throws `Unusable` unless the hash in the statement's current row matches its three numbers.
    private static func check(_ table: RowHash.Table, _ row: Statement) throws(Unusable) {
        let hash = hash(table, row.integer(0), row.integer(1), row.integer(2))
        guard !row.isNull(3), row.integer(3) == hash else {
            throw Unusable(reason: "found a row of `\(table)` without the hash that was written with it")
        }
    }

    /// Adds hashes to the rows that describe the logs: a wrong number of partitions would mislead all readers. Rows of
    /// a file of version 2 get the hash of their present content.
    private func addHashes() throws(SQLiteError) {
        let hasDeployments = try hasDeployments()
        for (table, columns) in Self.columns where table != .deployment || hasDeployments {
            if try connection.integer("SELECT count(*) FROM pragma_table_info('\(table)') WHERE name = 'hash'") == 0 {
                try connection.execute("ALTER TABLE \(table) ADD COLUMN hash INTEGER")
            }
            let rows = try connection.prepare("SELECT \(columns) FROM \(table)")
            var hashes: [(row: Int64, hash: Int64)] = []
            while try rows.step() {
                let row = rows.integer(0)
                hashes.append((row, Self.hash(table, row, rows.integer(1), rows.integer(2))))
            }
            let update = try connection.prepare("UPDATE \(table) SET hash = ?2 WHERE rowid = ?1")
            for (row, hash) in hashes {
                update.bind(1, row)
                update.bind(2, hash)
                try update.run()
            }
        }
    }

    // MARK: Logs

    /// Returns the current log and its number; nil: there is none yet.
    func current() throws -> (log: Log, number: Int)? {
        let statement = try connection.prepare(
            "SELECT number, epoch, 0, hash FROM control ORDER BY number DESC LIMIT 1"
        )
        guard try statement.step() else { return nil }
        try Self.check(.control, statement)
        let (number, epoch) = (Int(statement.integer(0)), Epoch(UInt64(bitPattern: statement.integer(1))))
        guard let log = try log(epoch) else { throw Unusable(reason: "the current log, \(epoch), is not in it") }
        return (log, number)
    }

    /// Returns the log of an epoch; nil: there is none.
    func log(_ epoch: Epoch) throws -> Log? {
        guard let log = try logs().first(where: { $0.epoch == epoch }) else { return nil }
        guard (1...Self.largestPartitionCount).contains(log.partitions) else {
            throw Unusable(reason: "the log \(epoch) has \(log.partitions) partitions")
        }
        return log
    }

    /// Returns the epochs of the logs, in the order of their creation.
    func epochs() throws -> [Epoch] { try logs().map(\.epoch) }

    /// Returns all logs, in the order of their creation.
    private func logs() throws -> [Log] {
        let rows = try connection.prepare("SELECT rowid, epoch, partitions, hash FROM log ORDER BY rowid")
        var logs: [Log] = []
        while try rows.step() {
            try Self.check(.log, rows)
            let epoch = Epoch(UInt64(bitPattern: rows.integer(1)))
            logs.append(Log(row: rows.integer(0), epoch: epoch, partitions: Int(rows.integer(2))))
        }
        return logs
    }

    /// Returns the deployment of the log of this number. In a file of an older build, the log's epoch is used as the
    /// deployment.
    func deployment(of number: Int, _ epoch: Epoch) throws -> Deployment {
        guard try hasDeployments() else { return Deployment(beginningWith: epoch) }
        let statement = try connection.prepare(
            "SELECT number, id, 0, hash FROM deployment WHERE number <= ?1 ORDER BY number DESC LIMIT 1"
        )
        statement.bind(1, Int64(number))
        guard try statement.step() else { return Deployment(beginningWith: epoch) }
        try Self.check(.deployment, statement)
        return Deployment(UInt64(bitPattern: statement.integer(1)))
    }

    private func hasDeployments() throws(SQLiteError) -> Bool {
        try connection.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'deployment'") != 0
    }

    /// Creates an empty log.
    func make(_ epoch: Epoch, partitions: Int) throws(SQLiteError) -> Log {
        try connection.transaction { () throws(SQLiteError) in
            try insert(epoch, partitions: partitions)
        }
    }

    /// Creates an empty log in a file that has no current log, and makes it the current one.
    func makeFirst(_ epoch: Epoch, partitions: Int) throws(SQLiteError) -> Log {
        try connection.transaction { () throws(SQLiteError) in
            try write(CurrentLog(epoch: epoch, partitions: partitions, number: 0))
            return try insert(epoch, partitions: partitions)
        }
    }

    /// Makes a log the current one. This also clears the file's doubt, because no client holds a seq of this log.
    func advance(to next: CurrentLog) throws(SQLiteError) {
        try connection.transaction { () throws(SQLiteError) in
            try write(next)
            try connection.execute("UPDATE file SET doubt = NULL")
        }
    }

    private func write(_ next: CurrentLog) throws(SQLiteError) {
        // Files of an older build lack the table.
        try connection.execute(
            "CREATE TABLE IF NOT EXISTS deployment (number INTEGER PRIMARY KEY, id INTEGER NOT NULL, hash INTEGER)"
        )
        let (number, id) = (Int64(next.number), Int64(bitPattern: next.deployment.value))
        let deployment = try connection.prepare("INSERT OR REPLACE INTO deployment VALUES (?1, ?2, ?3)")
        deployment.bind(1, number)
        deployment.bind(2, id)
        deployment.bind(3, Self.hash(.deployment, number, id))
        try deployment.run()
        let (epoch, control) = (
            Int64(bitPattern: next.epoch.value), try connection.prepare("INSERT INTO control VALUES (?1, ?2, ?3)")
        )
        control.bind(1, number)
        control.bind(2, epoch)
        control.bind(3, Self.hash(.control, number, epoch))
        try control.run()
    }

    private func insert(_ epoch: Epoch, partitions: Int) throws(SQLiteError) -> Log {
        // The row number is part of the hash.
        let row = (try connection.integer("SELECT max(rowid) FROM log") ?? 0) + 1
        let statement = try connection.prepare(
            "INSERT INTO log (rowid, epoch, partitions, hash) VALUES (?1, ?2, ?3, ?4)"
        )
        statement.bind(1, row)
        statement.bind(2, Int64(bitPattern: epoch.value))
        statement.bind(3, Int64(partitions))
        statement.bind(4, Self.hash(.log, row, Int64(bitPattern: epoch.value), Int64(partitions)))
        try statement.run()
        let log = Log(row: row, epoch: epoch, partitions: partitions)
        for partition in 0..<partitions {
            // The key of a row is the last seq of its records. New rows are therefore appended to the right-most leaf.
            // The row of a seq is the first one with a key at or above it.
            try connection.execute(
                """
                CREATE TABLE \(log.table(partition))
                    (last INTEGER PRIMARY KEY, count INTEGER NOT NULL, records BLOB NOT NULL)
                """
            )
        }
        return log
    }
}
