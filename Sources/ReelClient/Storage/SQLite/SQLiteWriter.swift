internal import ReelCore
internal import ReelSQLite

/// The only connection of an SQLite storage that writes and makes checkpoints.
///
/// SQLite before 3.51.3 can damage the WAL if two connections checkpoint at the same time.
final class SQLiteWriter {
    /// The number of pages in the WAL from which it is copied into the file.
    private static let walFramesMax = 1_000
    /// The size in bytes that the WAL keeps when it begins again, after it was larger.
    private static let walBytesKept = 8 << 20
    /// The number of attempts to make the file shorter. A reader that holds an old snapshot prevents it.
    private static let shorteningsMax = 100
    /// The number of unused pages that the file may always have.
    private static let unusedPagesMax = 256

    /// The state of the file's unused pages.
    private enum Space {
        /// Few pages are unused, so they wait for new data.
        case fitting
        /// Many pages were unused. They are given back to the file system in slices, after each commit.
        case shrinking
    }

    private let connection: Connection
    private(set) var files: StorageFiles

    private let begin: Statement
    private let end: Statement
    private let unusedPages: Statement
    private let pages: Statement
    private let release: Statement
    private let changes: ChangeStatements
    private let pageBytes: Int

    private var synchronous = Connection.Synchronous.full
    /// True if a commit was made that a power failure can still undo.
    private var hasVolatileCommits = false
    private var plan = CheckpointPlan(frames: SQLiteWriter.walFramesMax)
    private var space = Space.fitting
    /// The number of attempts that are left to make the file as short as its content, after pages were released.
    private var shorteningsLeft = 0

    /// Opens the connection to a file that `StorageFormat` has prepared.
    init(_ files: inout StorageFiles) throws(ReelError) {
        do throws(SQLiteError) {
            let connection = try Connection(path: files.path, mode: .readWrite, busyMs: 0)
            try connection.useWAL(.full)
            try connection.execute("PRAGMA journal_size_limit = \(Self.walBytesKept)")
            begin = try connection.prepare("BEGIN IMMEDIATE")
            end = try connection.prepare("COMMIT")
            unusedPages = try connection.prepare("PRAGMA freelist_count")
            pages = try connection.prepare("PRAGMA page_count")
            release = try connection.prepare("PRAGMA incremental_vacuum(32)")
            changes = try ChangeStatements(connection)
            pageBytes = Int(try connection.integer("PRAGMA page_size") ?? 0)
            files.opened(resolved: connection.path)
            self.connection = connection
            self.files = files
        } catch {
            throw ReelError(error, doing: "open \(files.path)")
        }
    }

    // MARK: Commits

    /// Applies all changes in one transaction. Throws `store_lost` if the files are not at their place, before or
    /// after it.
    func commit(_ changes: StorageChanges, durably: Bool) throws(ReelError) {
        try files.check()
        do throws(SQLiteError) {
            let commits = connection.walCommits
            try transaction(durably ? .full : .normal) { () throws(SQLiteError) in
                try self.changes.apply(changes)
                try noteUnusedPages()
            }
            if durably, hasVolatileCommits, connection.walCommits == commits {
                // Nothing was written, so SQLite has not waited for the disk. But this commit may repeat an earlier
                // one that the disk does not have yet.
                try transaction(.full) { () throws(SQLiteError) in try StorageFormat.markInUse(connection) }
            }
            hasVolatileCommits = !durably && (hasVolatileCommits || connection.walCommits != commits)
        } catch {
            throw ReelError(error, doing: "commit")
        }
        try files.check(walFrames: connection.walFrames, pageBytes: pageBytes)
        tidy()
    }

    /// Throws `store_lost` if the files are not at their place.
    func checkFiles() throws(ReelError) { try files.check() }

    private func transaction(
        _ durability: Connection.Synchronous,
        _ body: () throws(SQLiteError) -> Void
    ) throws(SQLiteError) {
        if synchronous != durability {
            try connection.execute("PRAGMA synchronous = \(durability.rawValue)")
            synchronous = durability
        }
        do throws(SQLiteError) {
            try begin.run()
            try body()
            try end.run()
        } catch {
            connection.rollback()
            throw error
        }
    }

    // MARK: Space

    /// Releases space after a commit. The commit is safe in the WAL: if a step fails, such as for lack of room, a later
    /// commit tries again.
    private func tidy() {
        if space == .shrinking, (try? releasePages(limit: .milliseconds(2))) == true {
            _ = shorten()
        } else if let checkpoint = plan.next(walFrames: connection.walFrames) {
            _ = try? connection.checkpoint(checkpoint)
        } else if space == .fitting {
            return
        }
        files.noteSizes()
    }

    /// Takes a step that makes the file shorter, if it is to shrink, without waiting for a commit. Returns true if
    /// there are further steps.
    func releaseSpace() -> Bool {
        guard space == .shrinking || shorteningsLeft > 0, (try? files.check()) != nil else { return false }
        defer { files.noteSizes() }
        if space == .shrinking {
            // After an error, a later commit tries again.
            guard let isDone = try? releasePages(limit: .milliseconds(2)) else { return false }
            guard isDone else { return true }
        }
        return !shorten()
    }

    /// Copies the WAL into the file, which becomes as short as its content. Returns true if that is done, or was tried
    /// often enough.
    private func shorten() -> Bool {
        shorteningsLeft = (try? connection.checkpoint(.passive)) == true ? 0 : max(0, shorteningsLeft - 1)
        return shorteningsLeft == 0
    }

    /// Decides if the file shrinks. Small files, and free pages that the next data will use, are not worth the copying.
    /// Call it inside a transaction, where it needs no lock.
    private func noteUnusedPages() throws(SQLiteError) {
        guard space == .fitting else { return }
        let unused = try unusedPages.number()
        guard unused >= Self.unusedPagesMax, unused * 4 >= (try pages.number()) else { return }
        space = .shrinking
    }

    /// Gives unused pages back to the file system, for some time at most. Returns true if none is left.
    private func releasePages(limit: Duration) throws(SQLiteError) -> Bool {
        let start = ContinuousClock.now
        while try unusedPages.number() > 0 {
            try transaction(.normal) { () throws(SQLiteError) in try release.run() }
            (hasVolatileCommits, shorteningsLeft) = (true, Self.shorteningsMax)
            guard ContinuousClock.now - start < limit else { return false }
        }
        space = .fitting
        return true
    }

    // MARK: End

    /// Copies the WAL into the file, so that the file alone is a complete copy while no client has it open.
    ///
    /// If another file has replaced it, the WAL is left unchanged, so that the app can still use both. The connection
    /// ends with its last reference.
    func fold() {
        guard files.hasFile() else { return }
        if space == .shrinking { _ = try? releasePages(limit: .milliseconds(50)) }
        do throws(SQLiteError) {
            try connection.execute("UPDATE mark SET in_use = 0")
            if try connection.checkpoint(.truncate) { connection.deleteWALAtEnd() }
        } catch {
            // The disk has no room, or fails. The WAL stays, and the next start continues with it.
        }
        files.noteSizes()
    }
}

extension Statement {
    /// Runs the statement and returns the integer of its only row.
    fileprivate func number() throws(SQLiteError) -> Int64 {
        guard try step() else { return 0 }
        defer { reset() }
        return integer(0)
    }
}

@available(*, unavailable)
extension SQLiteWriter: Sendable {}
