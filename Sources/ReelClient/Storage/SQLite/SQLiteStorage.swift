public import ReelCore
internal import ReelSQLite
internal import Synchronization

/// A storage in one SQLite file.
///
/// One client of one process can have the file open at a time; the file `PATH-lock` beside it holds the lock. While
/// the storage is open there are also `PATH-wal` and `PATH-shm`. `close` copies everything into the file and removes
/// the others, so that the file alone is a complete copy.
///
/// A snapshot has a connection of its own, so reading never waits for a commit. A snapshot keeps the storage open, so
/// release it before the file is opened again, or call `close`. After `close`, snapshots throw `closed`.
public final class SQLiteStorage: DeviceStorage {
    /// Returns the changes that bring the tables of an earlier format, which are still there, into the new one.
    typealias Upgrade = (_ connection: Connection, _ format: Int64) throws -> StorageChanges

    private enum State {
        case open(SQLiteWriter)
        case closed
    }

    /// The path that was given.
    public let path: String
    /// True if the last commits before this start are lost: the file states that it has a WAL, and there was none.
    public let hasLostCommits: Bool

    private let lock: StorageLock
    private let state: Mutex<State>
    private let readers: SQLiteReaders

    /// Opens the file, or creates it if it does not exist.
    ///
    /// Throws `store_busy`, `store_full`, `store_failed`, `store_format`, `store_damaged` or `store_lost` if that is
    /// not possible.
    public convenience init(path: String) throws(ReelError) {
        try self.init(path: path, upgrade: nil)
    }

    /// Opens the file, or creates it if it does not exist.
    ///
    /// `upgrade` is called for a file of an earlier format, inside the transaction that creates the new tables. If it
    /// throws, the file stays as it was. Without it, such a file is refused with `store_format`.
    init(path: String, upgrade: Upgrade?) throws(ReelError) {
        var files = try StorageFiles(path)
        lock = try StorageLock(files.resolved + "-lock")
        hasLostCommits = try StorageFormat.prepare(files, upgrade)
        let writer = try SQLiteWriter(&files)
        readers = SQLiteReaders(files)
        state = Mutex(.open(writer))
        self.path = path
    }

    deinit { close() }

    /// Returns the content at this moment. Opens another connection if all are in use.
    public func snapshot() throws(ReelError) -> any StorageSnapshot {
        let reader: SQLiteReader
        do throws(ReelError) {
            reader = try readers.take()
        } catch {
            if error.code != .closed { try checkFiles() }
            throw error
        }
        return SQLiteSnapshot(of: self, reader)
    }

    /// Throws `store_lost` if the files are not at their place. Waits for a commit on another thread.
    func checkFiles() throws(ReelError) {
        try state.withLock { state throws(ReelError) in
            if case .open(let writer) = state { try writer.checkFiles() }
        }
    }

    /// Applies all changes in one transaction.
    ///
    /// Throws `store_lost` if the files are not at their place, before or after it. Any other error means that nothing
    /// was applied.
    public func commit(_ changes: StorageChanges, durably: Bool) throws(ReelError) {
        try state.withLock { state throws(ReelError) in
            guard case .open(let writer) = state else { throw .closedStorage }
            try writer.commit(changes, durably: durably)
        }
    }

    /// Gives a part of the unused pages back to the file system, if there are many. Returns true if a later call can
    /// give back more.
    func releaseSpace() -> Bool {
        state.withLock { state in if case .open(let writer) = state { writer.releaseSpace() } else { false } }
    }

    /// Ends the use: copies the WAL into the file and removes the files beside it.
    ///
    /// Waits for a commit on another thread. If another file has replaced this one, the WAL is left unchanged, so that
    /// the app can still use both.
    public func close() {
        readers.close()
        state.withLock { state in
            guard Self.fold(&state) != nil else { return }
            lock.release()
        }
    }

    /// Deletes the file and those beside it, and ends the use. Throws `store_failed` if that is not possible.
    public func erase() throws(ReelError) {
        readers.close()
        try state.withLock { state throws(ReelError) in
            guard let files = Self.fold(&state) else { throw .closedStorage }
            defer { lock.release() }
            try files.remove()
        }
    }

    /// Ends the writer and its connection. Returns the files that it had; nil if it has ended before.
    private static func fold(_ state: inout State) -> StorageFiles? {
        guard case .open(let writer) = state else { return nil }
        writer.fold()
        state = .closed
        return writer.files
    }

    /// Takes back the reader of a snapshot that has ended.
    func giveBack(_ reader: SQLiteReader) { readers.giveBack(reader) }
}
