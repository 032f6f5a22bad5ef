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
    /// 1: one log, without `control`. 2: without `file` and hashes.
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
            try addHashes()
        }
    }

    /// Brings a file of an older version to this one, in one transaction.
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

    // MARK: Hashes

    /// What a row of `log`, `control` or `deployment` says, as two numbers beside its own.
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

    /// Throws `Unusable` unless the current row of a statement, three numbers and the hash, has its hash.
    private static func check(_ table: RowHash.Table, _ row: Statement) throws(Unusable) {
        let hash = hash(table, row.integer(0), row.integer(1), row.integer(2))
        guard !row.isNull(3), row.integer(3) == hash else {
            throw Unusable(reason: "found a row of `\(table)` without the hash that was written with it")
        }
    }

    /// Adds the hashes of the rows that say what logs there are: another number of partitions would mislead all
    /// readers. Rows of a file of version 2 get theirs as they are found.
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

    /// The log that is the current one, with its number; nil: there is none yet.
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

    /// The log of an epoch; nil: there is none.
    func log(_ epoch: Epoch) throws -> Log? {
        guard let log = try logs().first(where: { $0.epoch == epoch }) else { return nil }
        guard (1...Self.largestPartitionCount).contains(log.partitions) else {
            throw Unusable(reason: "the log \(epoch) has \(log.partitions) partitions")
        }
        return log
    }

    /// The epochs of the logs, in the order in which they were made.
    func epochs() throws -> [Epoch] { try logs().map(\.epoch) }

    /// All logs, in the order in which they were made.
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

    /// The deployment of the log of this number. Files of an older build do not say it: the log's epoch stands for it.
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
        // The row's number is a part of the hash.
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
