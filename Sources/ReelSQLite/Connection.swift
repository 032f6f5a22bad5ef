internal import CSQLite

/// A connection to a database file. One thread at a time may use it, and it has no lock of its own. Share it through a
/// `Mutex`, or open one for each thread.
public final class Connection {
    /// The way in which the file is opened.
    public enum Mode: Sendable {
        /// For reading and writing; the file is created if it does not exist.
        case create
        /// For reading and writing; the file must exist.
        case readWrite
        /// For reading; the file must exist. In WAL mode the `-shm` file next to it is still written.
        case readOnly
    }

    /// The durability of a commit.
    public enum Synchronous: String, Sendable {
        /// A commit that has returned is on the disk. A disk that fails makes the commit fail.
        case full = "FULL"
        /// A power failure may lose the last commits, and a failing disk may stay unnoticed. For data that can be
        /// rebuilt.
        case normal = "NORMAL"
    }

    /// The strength of a checkpoint.
    public enum Checkpoint: Sendable {
        /// Copies the frames that no reader needs, and never waits.
        case passive
        /// Waits (at most the busy time) for readers, so that the next commit restarts the WAL.
        case restart
        /// As `restart`, and truncates the WAL file to zero bytes.
        case truncate
    }

    let handle: OpaquePointer
    private let observer = CommitObserver()

    /// Opens a file.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - mode: The way in which the file is opened.
    ///   - busyMs: The time in milliseconds to wait for another connection's lock. Even a reader can meet one: the
    ///     first connection that opens a file after a kill locks it while it reads the WAL.
    /// - Throws: The error of SQLite if the file cannot be opened.
    public init(path: String, mode: Mode, busyMs: Int32 = 2_000) throws(SQLiteError) {
        let flags =
            switch mode {
            case .create: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
            case .readWrite, .readOnly: SQLITE_OPEN_READWRITE
            }
        var opened: OpaquePointer?
        let result = sqlite3_open_v2(path, &opened, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil)
        guard result == SQLITE_OK, let opened else {
            let error = SQLiteError(opened, "open \(path)")
            sqlite3_close_v2(opened)
            throw error
        }
        handle = opened
        sqlite3_busy_timeout(handle, busyMs)
        // Only the connection that the design names makes checkpoints, not the one that happens to close last.
        _ = reel_sqlite3_no_checkpoint_on_close(handle)
        _ = reel_sqlite3_defensive(handle)
        sqlite3_wal_hook(handle, { CommitObserver.committed($0, frames: $3) }, observer.context)
        try execute("PRAGMA secure_delete = OFF; PRAGMA trusted_schema = OFF")
        if mode == .readOnly { try execute("PRAGMA query_only = ON") }
    }

    deinit {
        sqlite3_close_v2(handle)
    }

    /// Switches the file to WAL mode, if it is not in it yet, and sets the durability of a commit. SQLite's automatic
    /// checkpoints are off.
    public func useWAL(_ synchronous: Synchronous) throws(SQLiteError) {
        guard try text("PRAGMA journal_mode = WAL") == "wal" else {
            throw SQLiteError(extendedCode: SQLITE_CANTOPEN, message: "the file cannot be switched to WAL")
        }
        try execute("PRAGMA synchronous = \(synchronous.rawValue)")
        #if canImport(Darwin)
        // `fsync` of Darwin leaves the data in the cache of the disk. With these settings SQLite uses `F_FULLFSYNC`.
        try execute("PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON")
        #endif
    }

    /// The absolute path of the file, with links resolved. The WAL is next to the file.
    public var path: String {
        sqlite3_db_filename(handle, "main").map { String(cString: $0) } ?? ""
    }

    // MARK: Statements

    /// Runs SQL text, one statement or several; it drops the rows.
    public func execute(_ sql: String) throws(SQLiteError) {
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw SQLiteError(handle, sql) }
    }

    /// Returns a statement that can be kept and run many times.
    public func prepare(_ sql: String) throws(SQLiteError) -> Statement {
        try Statement(self, sql)
    }

    /// Returns the first column of the first row as an integer; nil if there is no row, or for NULL.
    public func integer(_ sql: String) throws(SQLiteError) -> Int64? {
        let statement = try prepare(sql)
        guard try statement.step(), !statement.isNull(0) else { return nil }
        return statement.integer(0)
    }

    /// Returns the first column of the first row as text; nil if there is no row, or for NULL.
    public func text(_ sql: String) throws(SQLiteError) -> String? {
        let statement = try prepare(sql)
        guard try statement.step(), !statement.isNull(0) else { return nil }
        return statement.text(0)
    }

    // MARK: Transactions

    /// Begins a transaction that holds the write lock from the start.
    public func begin() throws(SQLiteError) { try execute("BEGIN IMMEDIATE") }
    /// Begins a transaction for reading: all its statements see the same state of the file.
    public func beginRead() throws(SQLiteError) { try execute("BEGIN") }
    /// Ends the transaction and keeps its writes. If it throws, none of the writes was kept.
    public func commit() throws(SQLiteError) {
        do {
            try execute("COMMIT")
        } catch {
            rollback()
            throw error
        }
    }
    /// Ends the transaction, if there is one, and drops its writes.
    public func rollback() {
        guard inTransaction else { return }
        sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
    }
    /// True while a transaction is open.
    public var inTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    /// Runs `body` in a transaction that holds the write lock. An error of `body` or of the commit undoes all of it.
    public func transaction<R>(_ body: () throws(SQLiteError) -> R) throws(SQLiteError) -> R {
        try begin()
        let result: R
        do {
            result = try body()
        } catch {
            rollback()
            throw error
        }
        try commit()
        return result
    }

    /// The number of rows that the last INSERT, UPDATE or DELETE changed.
    public var changes: Int { Int(sqlite3_changes(handle)) }
    /// The rowid of the last INSERT.
    public var lastInsertedRow: Int64 { sqlite3_last_insert_rowid(handle) }

    // MARK: WAL

    /// The number of frames in the WAL after this connection's last commit.
    public var walFrames: Int { observer.frames }
    /// The number of this connection's commits that have written to the WAL.
    public var walCommits: Int { observer.commits }

    /// Makes the end of this connection delete the WAL, if no other connection has the file open.
    public func deleteWALAtEnd() {
        _ = reel_sqlite3_checkpoint_on_close(handle)
    }

    /// Copies the WAL into the file. Returns true if all of it was copied.
    @discardableResult
    public func checkpoint(_ checkpoint: Checkpoint) throws(SQLiteError) -> Bool {
        let mode =
            switch checkpoint {
            case .passive: SQLITE_CHECKPOINT_PASSIVE
            case .restart: SQLITE_CHECKPOINT_RESTART
            case .truncate: SQLITE_CHECKPOINT_TRUNCATE
            }
        var frames: Int32 = 0
        var copied: Int32 = 0
        let result = sqlite3_wal_checkpoint_v2(handle, nil, mode, &frames, &copied)
        guard result == SQLITE_OK || result & 0xff == SQLITE_BUSY else { throw SQLiteError(handle, "checkpoint") }
        return result == SQLITE_OK && frames == copied
    }

    // MARK: Interruption

    /// A handle that can interrupt this connection's running call from another thread.
    public var interrupter: Interrupter { Interrupter(handle) }

    /// A handle that interrupts the running call of a connection. The connection must outlive it.
    public struct Interrupter: @unchecked Sendable {
        private let handle: OpaquePointer

        init(_ handle: OpaquePointer) { self.handle = handle }

        /// Ends the running call with an error of kind `interrupted`; later calls run as usual. From any thread.
        public func interrupt() { sqlite3_interrupt(handle) }
    }
}

@available(*, unavailable)
extension Connection: Sendable {}

/// The receiver of SQLite's commit hook, which gives the number of frames in the WAL after each commit. To set the hook
/// also switches SQLite's own checkpoints off.
private final class CommitObserver {
    var frames = 0
    var commits = 0

    var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    static func committed(_ context: UnsafeMutableRawPointer?, frames: Int32) -> Int32 {
        guard let context else { return SQLITE_OK }
        let observer = Unmanaged<CommitObserver>.fromOpaque(context).takeUnretainedValue()
        observer.frames = Int(frames)
        observer.commits += 1
        return SQLITE_OK
    }
}
