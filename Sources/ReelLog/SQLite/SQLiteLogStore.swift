internal import Glibc
public import ReelCore

/// The logs of one box, one epoch after the other, all in one SQLite file that several processes share. What was
/// written to a log stays in the file when another one follows it.
public final class SQLiteLogStore: LogStore {
    private let path: String
    private let report: LockWaitReport

    /// The logs of the file at this path; it is made with the first log. `report` is told of long waits for its lock.
    public init(path: String, report: @escaping LockWaitReport = { _ in }) {
        self.path = path
        self.report = report
    }

    /// Whether there is a file. One that this user may not look for is no missing one.
    public func exists() throws(LogError) -> Bool {
        if access(path, F_OK) == 0 { return true }
        guard errno == ENOENT || errno == ENOTDIR else { throw LogError(errno: errno, "look for \(path)") }
        return false
    }

    /// The current log; nil: there is no file, or no log in it.
    public func current() throws(LogError) -> CurrentLog? {
        try lockedIfMade { tables in
            try tables.current().map { (log, number) in
                let deployment = try tables.deployment(of: number, log.epoch)
                return CurrentLog(epoch: log.epoch, partitions: log.partitions, number: number, deployment: deployment)
            }
        } ?? nil
    }

    /// The epochs of all logs of the file, in the order in which they were made.
    public func epochs() throws(LogError) -> [Epoch] {
        try lockedIfMade { tables in try tables.epochs() } ?? []
    }

    /// Makes the log of a new epoch; see `LogStore.create`.
    public func create(_ epoch: Epoch, partitions: Int) throws(LogError) {
        try LogFile.check(partitions)
        let found = try locked { tables in
            try tables.log(epoch)?.partitions ?? tables.make(epoch, partitions: partitions).partitions
        }
        if found != partitions { throw .otherPartitions(found, partitions, path) }
    }

    /// Opens a log of the file.
    public func open(_ epoch: Epoch) throws(LogError) -> any EventLog {
        guard try exists() else { throw LogError(.damaged, "there is no log at \(path)") }
        let walFrames = SQLiteLog.checkpointFramesDefault
        return try SQLiteLog(LogFile(path: path, epoch: epoch, walFrames: walFrames, report: report))
    }

    /// Makes a log the current one; see `LogStore.advance`.
    public func advance(to next: CurrentLog) throws(LogError) {
        try locked { [path] tables in
            if let found = try tables.current()?.number, next.number != found + 1 {
                throw LogError(
                    .conflict,
                    "found the current log's number \(found), expected \(next.number - 1): \(path)"
                )
            }
            guard try tables.log(next.epoch)?.partitions == next.partitions else {
                throw LogError(
                    .badRequest,
                    "there is no log \(next.epoch) of \(next.partitions) partitions in \(path)"
                )
            }
            try tables.advance(to: next)
        }
    }

    /// Settles what is doubtful about the file (see `EventLog.notice`): an operator knows that it is whole. Returns
    /// what was found when it became doubtful, or nil where nothing was. Throws `bad_request` where there is no log.
    public func accept() throws(LogError) -> String? {
        guard try current() != nil else { throw LogError(.badRequest, "there is no log at \(path)") }
        let lock = try LogFile.lock(path, report)
        return try lock.whileHeld { () throws(LogError) in
            let hadWAL = LogFile.hasWAL(path, lock)
            return try change(lock) { try $0.accept(hadWAL: hadWAL, closings: lock.closings)?.finding }
        }
    }

    /// Closes the file. Logs that were opened stay open.
    public func close() {}

    /// Asks a file, which stays as it is; nil: there is none, or nothing was made in it.
    private func lockedIfMade<R>(_ body: (LogTables) throws -> R) throws(LogError) -> R? {
        guard try exists() else { return nil }
        return try LogFile.lock(path, report).whileHeld { () throws(LogError) in
            try LogFile.withTablesIfMade(path, body)
        }
    }

    private func locked<R>(_ body: (LogTables) throws -> R) throws(LogError) -> R {
        let lock = try LogFile.lock(path, report)
        return try lock.whileHeld { () throws(LogError) in try change(lock, body) }
    }

    /// Changes the file, with the lock held, and leaves it whole where no process has it open.
    private func change<R>(_ lock: FileLock, _ body: (LogTables) throws -> R) throws(LogError) -> R {
        try LogFile.withTables(path, lock) { tables in
            let result = try body(tables)
            LogFile.foldBack(tables.connection, lock)
            return result
        }
    }
}
