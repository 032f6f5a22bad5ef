internal import Glibc
public import ReelCore

/// The logs of a single machine, one per epoch, in one SQLite file that several processes share. The records of a log
/// stay in the file when the next log follows.
public final class SQLiteLogStore: LogStore {
    private let path: String
    private let report: LockWaitReport

    /// Creates a store for the file at `path`. The file is created with its first log.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - report: Called with long waits for the file's lock.
    public init(path: String, report: @escaping LockWaitReport = { _ in }) {
        self.path = path
        self.report = report
    }

    /// True if the file exists. Throws if this user has no right to look for it: it may exist then.
    public func exists() throws(LogError) -> Bool {
        if access(path, F_OK) == 0 { return true }
        guard errno == ENOENT || errno == ENOTDIR else { throw LogError(errno: errno, "look for \(path)") }
        return false
    }

    /// Returns the current log; nil: there is no file, or no log in it.
    public func current() throws(LogError) -> CurrentLog? {
        try lockedIfMade { tables in
            try tables.current().map { (log, number) in
                let deployment = try tables.deployment(of: number, log.epoch)
                return CurrentLog(epoch: log.epoch, partitions: log.partitions, number: number, deployment: deployment)
            }
        } ?? nil
    }

    /// Returns the epochs of all logs of the file, in the order of their creation.
    public func epochs() throws(LogError) -> [Epoch] {
        try lockedIfMade { tables in try tables.epochs() } ?? []
    }

    /// Creates the log of a new epoch; see `LogStore.create`.
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

    /// Clears the file's doubt (see `EventLog.notice`), because an operator knows that the file is complete.
    ///
    /// - Returns: The finding that caused the doubt; nil: there was none.
    /// - Throws: `bad_request` if there is no log.
    public func accept() throws(LogError) -> String? {
        guard try current() != nil else { throw LogError(.badRequest, "there is no log at \(path)") }
        let lock = try LogFile.lock(path, report)
        return try lock.whileHeld { () throws(LogError) in
            let hadWAL = LogFile.hasWAL(path, lock)
            return try change(lock) { try $0.accept(hadWAL: hadWAL, closings: lock.closings)?.finding }
        }
    }

    /// Does nothing: the store holds no file open. Logs that were opened stay open.
    public func close() {}

    /// Reads the tables of a file without changing it; nil: there is no file, or it has no tables.
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

    /// Changes the file, with the lock held. If no process has the file open, it is then complete without its WAL.
    private func change<R>(_ lock: FileLock, _ body: (LogTables) throws -> R) throws(LogError) -> R {
        try LogFile.withTables(path, lock) { tables in
            let result = try body(tables)
            LogFile.foldBack(tables.connection, lock)
            return result
        }
    }
}
