internal import Glibc
internal import ReelCore
internal import ReelSQLite

/// A log in its SQLite file, which may hold other logs too: creates, finds and recognises it.
struct LogFile: Sendable {
    let path: String
    let lock: FileLock
    private let log: LogTables.Log
    private let identity: FileLook.Identity
    private let wal: FileLook.Identity

    /// The epoch of the log.
    var epoch: Epoch { log.epoch }
    /// The number of partitions of the log.
    var partitions: Int { log.partitions }

    /// Opens the file's current log. If the file or the log is missing, it is created; concurrent callers create it
    /// once.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - partitions: The expected number of partitions; nil: any, and a new log has 4.
    ///   - walFrames: The length that the WAL gets at once, in frames.
    ///   - report: Called with long waits for the file's lock.
    /// - Throws: `bad_request` if the log has another number of partitions.
    init(
        path: String,
        partitions: Int?,
        walFrames: Int,
        report: @escaping LockWaitReport = { _ in }
    ) throws(LogError) {
        if let partitions { try Self.check(partitions) }
        try self.init(path: path, walFrames: walFrames, report: report) { (lock, body) throws(LogError) in
            try Self.withTables(path, lock) { tables in
                let log = try tables.current()?.log ?? tables.makeFirst(.random(), partitions: partitions ?? 4)
                try body(tables)
                return log
            }
        }
        if let partitions, partitions != self.partitions { throw .otherPartitions(self.partitions, partitions, path) }
    }

    /// Opens the log of `epoch` in the file.
    init(path: String, epoch: Epoch, walFrames: Int, report: @escaping LockWaitReport) throws(LogError) {
        try self.init(path: path, walFrames: walFrames, report: report) { (_, body) throws(LogError) in
            let log = try Self.withTablesIfMade(path) { tables -> LogTables.Log? in
                guard let log = try tables.log(epoch) else { return nil }
                try body(tables)
                return log
            }
            guard let log = log ?? nil else { throw LogError(.damaged, "there is no log \(epoch) in \(path)") }
            return log
        }
    }

    /// Opens a log that `find` returns. `find` is called with the lock held. It calls back with the tables once it has
    /// found the log.
    private init(
        path: String,
        walFrames: Int,
        report: @escaping LockWaitReport,
        _ find: (FileLock, (LogTables) throws -> Void) throws(LogError) -> LogTables.Log
    ) throws(LogError) {
        let lock = try Self.lock(path, report)
        self.path = path
        self.lock = lock
        log = try lock.whileHeld { () throws(LogError) in
            let hadWAL = Self.hasWAL(path, lock)
            let log = try find(lock) { try $0.open(hadWAL: hadWAL, closings: lock.closings) }
            Self.lengthenWAL(path, frames: walFrames)
            return log
        }
        identity = try Self.identity(path)
        wal = try Self.identity(path + "-wal")
    }

    /// Opens a further connection to the file. Commits and checkpoints must be made while the lock is held.
    func connect(_ mode: Connection.Mode) throws(LogError) -> Connection {
        do throws(SQLiteError) {
            let connection = try Connection(path: path, mode: mode)
            try connection.useWAL(.full)
            return connection
        } catch {
            throw LogError(error, path)
        }
    }

    /// Copies the WAL into the file, so that the file is complete without it, and stores that the file was closed.
    ///
    /// If another user has the file open, the last user does this; the file is then as complete as before. Waits two
    /// seconds at most for the lock.
    func foldBack(_ connection: Connection) {
        _ = lock.whileHeld(waitingAtMost: Self.closingTime) {
            // The lock is held here, so of two users that close at the same time the second sees that the first has
            // gone.
            lock.stopListening()
            Self.foldBack(connection, lock)
        }
    }

    /// Does the same as `foldBack(_:)`, for a caller that holds the lock and has no log open.
    static func foldBack(_ connection: Connection, _ lock: FileLock) {
        guard !lock.isListenedTo else {
            _ = try? connection.checkpoint(.passive)
            return
        }
        guard var row = try? FileRow(connection) else { return }
        if row.isOpen {
            row.isOpen = false
            row.closings += 1
            guard (try? connection.transaction({ () throws(SQLiteError) in try row.write(connection) })) != nil else {
                return
            }
        }
        // A program that reads the file may block the truncation of the WAL. The WAL then stays, and the next opener
        // finds it.
        guard (try? connection.checkpoint(.truncate)) == true else { return }
        lock.closings = row.closings
    }

    /// Throws `epoch_changed` if the file or the WAL at the path is missing or another one. Commits to the open file
    /// would be lost then.
    func checkThatItIsThere() throws(LogError) {
        for (path, identity) in [(path, identity), (path + "-wal", wal)] where FileLook(path)?.identity != identity {
            throw LogError(.epochChanged, "the file was removed or replaced while it was open: \(path)")
        }
    }

    /// Returns the error for records that cannot be read as they were written.
    func damaged(
        _ partition: Int,
        _ seqs: ClosedRange<Seq>,
        _ reason: String = "found a row without the hash that was written with it"
    ) -> LogError {
        let (first, last) = (seqs.lowerBound, seqs.upperBound)
        let range = first == last ? "seq \(first)" : "seqs \(first) to \(last)"
        return LogError(
            .damaged,
            "\(range) of partition \(partition) cannot be read: \(reason) in \(path); \(Self.passDamage)"
        )
    }

    /// The advice for damaged rows. The state of a snapshot node may contain the lost records.
    static let passDamage =
        "`reel epoch new --skip-damaged --from-snapshot DIR` continues with the state of a snapshot node,"
        + " `reel epoch new --skip-damaged` without what is lost; `reel dump --skip-damaged` prints what can be read"

    /// How long a process that closes the file waits for the lock.
    private static let closingTime = Duration.seconds(2)

    /// Returns the name of a partition's table.
    func table(_ partition: Int) -> String { log.table(partition) }

    /// The advice for a path at which there never was a log.
    static let otherPlace = "say with --log or --data where the log is"

    /// The advice for a file that cannot be used. The last commits are only in the WAL.
    static let putAside = "put the file aside together with its -wal, do not delete them"

    // MARK: Opening

    /// Throws `bad_request` for a number of partitions that no log can have.
    static func check(_ partitions: Int) throws(LogError) {
        guard (1...LogTables.largestPartitionCount).contains(partitions) else {
            throw LogError(
                .badRequest,
                "found \(partitions) partitions, expected 1 to \(LogTables.largestPartitionCount)"
            )
        }
    }

    /// Returns the folder of a file.
    static func folder(_ path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Returns the lock of a file that is a log's file, or will be.
    static func lock(_ path: String, _ report: @escaping LockWaitReport) throws(LogError) -> FileLock {
        if access(folder(path), F_OK) != 0, errno == ENOENT {
            var error = LogError(
                .logUnavailable,
                "there is no folder \(folder(path)) for the log's file; make it first"
            )
            error.isLasting = true
            throw error
        }
        try refuseWhatIsNoFile(path)
        return try FileLock(path: path + ".lock", report: report)
    }

    /// Throws if the path cannot be a log's file. The content is read through SQLite only: if a process opens and
    /// closes a database's file directly, all its SQLite locks on that file are released.
    private static func refuseWhatIsNoFile(_ path: String) throws(LogError) {
        // The creator of a log creates the file before the WAL, so the WAL is checked first.
        var (status, wal) = (stat(), stat())
        let hasRecords = stat(path + "-wal", &wal) == 0 && wal.st_size > 0
        guard stat(path, &status) == 0 else {
            guard hasRecords else { return }
            throw LogError(
                .damaged,
                "found records in \(path)-wal and no file that they belong to: bring it back, or put the -wal aside,"
                    + " too, do not delete it: \(path)"
            )
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw LogError(.damaged, "found a folder or device, expected a log's file: \(otherPlace): \(path)")
        }
        // SQLite would open a file without write permission as read-only, and fail much later.
        guard access(path, R_OK | W_OK) == 0 else { throw LogError(errno: errno, "write \(path)") }
        // SQLite would remove the WAL of an empty file.
        guard status.st_size > 0 || !hasRecords else {
            throw LogError(
                .damaged,
                "found an empty file with records in the -wal beside it: put both aside, do not delete them: \(path)"
            )
        }
        // No lock file is created next to another program's file.
        if status.st_size > 0, access(path + ".lock", F_OK) != 0 {
            try withConnection(path, .readWrite) { _ = try $0.integer("PRAGMA schema_version") }
        }
    }

    /// Calls `body` with the tables of a file, through a connection of its own. Creates a missing file. The lock must
    /// be held.
    static func withTables<R>(
        _ path: String,
        _ lock: FileLock,
        _ body: (LogTables) throws -> R
    ) throws(LogError) -> R {
        try withConnection(path, .create) { connection in
            // A new file was never closed, even if the lock file has a count of an earlier file.
            if try LogTables.areMissing(in: connection) { lock.closings = 0 }
            let result = try body(LogTables(connection))
            // WAL mode starts only now, so the first content of a new file is in the file itself.
            try connection.useWAL(.full)
            // The first read creates the WAL.
            _ = try connection.integer("PRAGMA schema_version")
            return result
        }
    }

    /// Calls `body` with the tables of an existing file, and creates nothing; nil: the file has no tables yet. The lock
    /// must be held.
    static func withTablesIfMade<R>(_ path: String, _ body: (LogTables) throws -> R) throws(LogError) -> R? {
        try withConnection(path, .readWrite) { try LogTables.areMissing(in: $0) ? nil : body(LogTables($0)) }
    }

    private static func withConnection<R>(
        _ path: String,
        _ mode: Connection.Mode,
        _ body: (Connection) throws -> R
    ) throws(LogError) -> R {
        do {
            return try body(try Connection(path: path, mode: mode))
        } catch let error as LogError {
            throw error
        } catch let error as SQLiteError {
            throw LogError(error, path)
        } catch let error as LogTables.Unusable {
            throw LogError(.damaged, "\(error.reason): \(error.advice): \(path)")
        } catch {
            throw LogError(.internal, "\(error)")
        }
    }

    /// True if no records are lost with a missing WAL: the WAL exists, or a process has the file open under this name.
    static func hasWAL(_ path: String, _ lock: FileLock) -> Bool {
        lock.isListenedTo || FileLook(path + "-wal").map { $0.size > 0 } ?? false
    }

    /// Extends the WAL to its full length at once. After each checkpoint SQLite writes the WAL from its start again.
    /// Commits then overwrite the file and never extend it, which halves their waiting time. SQLite ignores zeros after
    /// the last frame. If the disk has no space for it, commits are only slower.
    private static func lengthenWAL(_ path: String, frames: Int) {
        let file = Glibc.open(path + "-wal", O_RDWR | O_CLOEXEC)
        guard file >= 0 else { return }
        defer { Glibc.close(file) }
        let zeros = [UInt8](repeating: 0, count: 1 << 18)
        var end = Int(lseek(file, 0, SEEK_END))
        let wanted = frames * (LogTables.pageSize + 24) + 32
        guard end < wanted else { return }
        while end < wanted {
            let written = pwrite(file, zeros, min(zeros.count, wanted - end), end)
            guard written > 0 else { return }
            end += written
        }
        fsync(file)
    }

    private static func identity(_ path: String) throws(LogError) -> FileLook.Identity {
        guard let look = FileLook(path) else { throw LogError(errno: errno, "look at \(path)") }
        return look.identity
    }
}

extension LogError {
    static func otherPartitions(_ found: Int, _ expected: Int, _ path: String) -> LogError {
        LogError(
            .badRequest,
            "found a log with \(found) partitions, expected \(expected): \(path); a log keeps their number: leave"
                + " --partitions out, or say \(found); `reel epoch new --partitions \(expected)` makes the next log"
                + " with \(expected)"
        )
    }

    /// Creates the error for an SQLite error of a log's file.
    init(_ error: SQLiteError, _ path: String) {
        switch error.kind {
        case .corrupt:
            self.init(.damaged, "the log's file is damaged: \(LogFile.putAside): \(path): \(error)")
        case .notADatabase:
            self.init(
                .damaged,
                "found a file that is no SQLite database, expected a log's file: \(LogFile.otherPlace): \(path)"
            )
        case .full:
            self.init(.logUnavailable, "no room on the disk; it works again when there is: \(path): \(error)")
        case .readOnly, .cannotOpen:
            self.init(
                .logUnavailable,
                "the log's file cannot be opened or written: it and its folder must be writable, and file descriptors "
                    + "left: \(path): \(error)"
            )
            isLasting = error.kind == .readOnly || access(LogFile.folder(path), W_OK | X_OK) != 0
        default:
            self.init(.logUnavailable, "\(path): \(error)")
        }
    }
}
