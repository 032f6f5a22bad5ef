internal import ReelCore
internal import ReelSQLite

/// What a log's file says of the logs in it. To be used while the file is locked; what writes does so in one
/// transaction.
///
/// | table | row |
/// | --- | --- |
/// | `log` | a log: its epoch and P; the row's number names its tables of records |
/// | `control` | which log was made the current one, by the number that it has as such |
/// | `deployment` | the deployment of the log of this number, and of later ones; missing in files of an older build |
/// | `file` | which file the log lies in, and whether it was closed; see `FileRow` |
/// | `nodes` | what a node announced |
/// | `records_K`, and of a later log `records_K_of_ROW` | groups of records of partition K |
struct LogTables {
    /// A log of the file.
    struct Log: Sendable {
        /// Its row, which names its tables.
        var row: Int64
        var epoch: Epoch
        var partitions: Int

        /// The table of a partition. The first log's are named as before there were others.
        func table(_ partition: Int) -> String {
            row == 1 ? "records_\(partition)" : "records_\(partition)_of_\(row)"
        }
    }

    /// Why a file cannot be used as it is, and what to do.
    struct Unusable: Error {
        var reason: String
        var advice = LogFile.putAside
    }

    let connection: Connection

    /// "Reel" in ASCII, where SQLite keeps a program's mark.
    private static let applicationID: Int64 = 0x5265_656c
    /// 1: one log, without `control`. 2: without `file`.
    private static let version: Int64 = 3
    static let pageSize = 8192
    static let largestPartitionCount = 1024

    /// The tables of a file; they are made, or brought to this version, where they are not.
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

    /// True if nothing was made in a file yet: it has no page.
    static func areMissing(in connection: Connection) throws(SQLiteError) -> Bool {
        try connection.integer("PRAGMA page_count") == 0
    }

    /// Makes the tables without a WAL: a file that has a page has all of them, whatever becomes of a `-wal`.
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
        }
    }

    /// Brings a file of an older version to this one, in one transaction.
    private func migrate(from found: Int64) throws(SQLiteError) {
        try connection.transaction { () throws(SQLiteError) in
            if found < 2 { try addControl() }
            if found < 3 { try addFile() }
            try connection.execute("PRAGMA user_version = \(Self.version)")
        }
    }

    /// A file of version 1 has one log, which is the current one.
    private func addControl() throws(SQLiteError) {
        try connection.execute(
            """
            CREATE TABLE control (number INTEGER PRIMARY KEY, epoch INTEGER NOT NULL);
            INSERT INTO control SELECT 0, epoch FROM log;
            """
        )
    }

    /// Of a file of version 2 it is not known whether it is a copy: it counts as the one that it was.
    private func addFile() throws(SQLiteError) {
        try connection.execute(FileRow.create)
        if let found = FileIdentity.look(at: connection.path) {
            try FileRow(identity: found.identity).write(connection)
        }
    }

    // MARK: Logs

    /// The log that is the current one, with its number; nil: there is none yet.
    func current() throws -> (log: Log, number: Int)? {
        let statement = try connection.prepare("SELECT number, epoch FROM control ORDER BY number DESC LIMIT 1")
        guard try statement.step() else { return nil }
        let (number, epoch) = (Int(statement.integer(0)), Epoch(UInt64(bitPattern: statement.integer(1))))
        guard let log = try log(epoch) else { throw Unusable(reason: "the current log, \(epoch), is not in it") }
        return (log, number)
    }

    /// The log of an epoch; nil: there is none.
    func log(_ epoch: Epoch) throws -> Log? {
        let statement = try connection.prepare("SELECT rowid, partitions FROM log WHERE epoch = ?1")
        statement.bind(1, Int64(bitPattern: epoch.value))
        guard try statement.step() else { return nil }
        let log = Log(row: statement.integer(0), epoch: epoch, partitions: Int(statement.integer(1)))
        guard (1...Self.largestPartitionCount).contains(log.partitions) else {
            throw Unusable(reason: "the log \(epoch) has \(log.partitions) partitions")
        }
        return log
    }

    /// The epochs of the logs, in the order in which they were made.
    func epochs() throws(SQLiteError) -> [Epoch] {
        let statement = try connection.prepare("SELECT epoch FROM log ORDER BY rowid")
        var epochs: [Epoch] = []
        while try statement.step() { epochs.append(Epoch(UInt64(bitPattern: statement.integer(0)))) }
        return epochs
    }

    /// The deployment of the log of this number. Files of an older build do not say it: the log's epoch stands for it.
    func deployment(of number: Int, _ epoch: Epoch) throws(SQLiteError) -> Deployment {
        guard try hasDeployments() else { return Deployment(beginningWith: epoch) }
        let statement = try connection.prepare(
            "SELECT id FROM deployment WHERE number <= ?1 ORDER BY number DESC LIMIT 1"
        )
        statement.bind(1, Int64(number))
        guard try statement.step() else { return Deployment(beginningWith: epoch) }
        return Deployment(UInt64(bitPattern: statement.integer(0)))
    }

    private func hasDeployments() throws(SQLiteError) -> Bool {
        try connection.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'deployment'") != 0
    }

    /// Makes an empty log.
    func make(_ epoch: Epoch, partitions: Int) throws(SQLiteError) -> Log {
        try connection.transaction { () throws(SQLiteError) in
            try insert(epoch, partitions: partitions)
        }
    }

    /// Makes an empty log and at once the current one, of a file that has none.
    func makeFirst(_ epoch: Epoch, partitions: Int) throws(SQLiteError) -> Log {
        try connection.transaction { () throws(SQLiteError) in
            try write(CurrentLog(epoch: epoch, partitions: partitions, number: 0))
            return try insert(epoch, partitions: partitions)
        }
    }

    /// Makes a log the current one. What was doubtful about the file is settled: no client holds a seq of this log.
    func advance(to next: CurrentLog) throws(SQLiteError) {
        try connection.transaction { () throws(SQLiteError) in
            try write(next)
            try connection.execute("UPDATE file SET doubt = NULL")
        }
    }

    private func write(_ next: CurrentLog) throws(SQLiteError) {
        // A table of its own: an older build writes `control` with two columns, and opens the file as before.
        try connection.execute(
            "CREATE TABLE IF NOT EXISTS deployment (number INTEGER PRIMARY KEY, id INTEGER NOT NULL)"
        )
        let deployment = try connection.prepare("INSERT OR REPLACE INTO deployment VALUES (?1, ?2)")
        deployment.bind(1, Int64(next.number))
        deployment.bind(2, Int64(bitPattern: next.deployment.value))
        try deployment.run()
        let statement = try connection.prepare("INSERT INTO control VALUES (?1, ?2)")
        statement.bind(1, Int64(next.number))
        statement.bind(2, Int64(bitPattern: next.epoch.value))
        try statement.run()
    }

    private func insert(_ epoch: Epoch, partitions: Int) throws(SQLiteError) -> Log {
        let statement = try connection.prepare("INSERT INTO log VALUES (?1, ?2)")
        statement.bind(1, Int64(bitPattern: epoch.value))
        statement.bind(2, Int64(partitions))
        try statement.run()
        let log = Log(row: connection.lastInsertedRow, epoch: epoch, partitions: partitions)
        for partition in 0..<partitions {
            // The last seq of a row's records is its key, so new rows go to the right-most leaf, and the row that holds
            // a seq is the first one at or above it.
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
