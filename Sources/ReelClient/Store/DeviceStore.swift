internal import ReelCore
internal import ReelSQLite

/// The device's SQLite file. For each stream it holds the queue of own events, a folded state in rows, the later
/// events, and the ranges of seq that both prove. For all streams it holds the log's number and the deployment.
///
/// Position and data change in one transaction. Promises to an app (an event in the queue, an op that was given) wait
/// for the disk. Data that can be received again does not wait, but comes later in the file. So a lost end of the file
/// leaves an earlier state, never a mixed one. Only one process may use the file at a time.
final class DeviceStore {
    /// The number of pages in the WAL from which it is copied into the file.
    private static let walFramesMax = 1_000

    let connection: Connection
    private(set) var file: StoreFile
    private var isFull = true
    /// True if the last commits are lost: the file states that a client has left a WAL, and there was none.
    let hasLostCommits: Bool

    let putStream: Statement
    private let putClient: Statement
    let putSite: Statement
    let putEntry: Statement
    let removeEntry: Statement
    let putPosition: Statement
    let dropPosition: Statement
    let putEvent: Statement
    let dropEvents: Statement
    let putState: Statement
    let putObject: Statement
    let dropObject: Statement
    let dropObjects: Statement
    let putSiteRow: Statement
    let dropSiteRow: Statement
    let dropSiteRows: Statement

    /// Opens the file. With `makesFile` it is created if it does not exist. Throws `store_busy`, `store_full`,
    /// `store_failed`, `store_format`, `store_damaged` or `store_lost` if that is not possible.
    init(path: String, makesFile: Bool = true) throws(ReelError) {
        var file = try StoreFile(path)
        guard makesFile || FileLook(file.path) != nil else {
            throw ReelError(.storeFailed, "the device's store: found no file at \(file.path)")
        }
        do throws(SQLiteError) {
            let connection = try Connection(path: file.path, mode: .create)
            try connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            try StoreFormat.check(connection)
            try connection.useWAL(.full)
            hasLostCommits = try connection.transaction { () throws(SQLiteError) in
                try StoreFormat.prepare(connection)
                return try Self.take(connection, hadWAL: file.hadWAL)
            }
            // From now on the file itself states that a WAL belongs to it.
            _ = try? connection.checkpoint(.passive)
            file.opened(resolved: connection.path)
            putStream = try connection.prepare(
                "INSERT INTO stream (name, site, next_op, site_hash) VALUES (?, ?, ?, ?)"
            )
            putClient = try connection.prepare(
                "UPDATE client SET number = ?, user = ?, deployment = ?, hash = ? WHERE row = 1"
            )
            putSite = try connection.prepare("UPDATE stream SET site = ?, next_op = ?, site_hash = ? WHERE row = ?")
            putEntry = try connection.prepare("INSERT OR REPLACE INTO outbox VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
            removeEntry = try connection.prepare("DELETE FROM outbox WHERE stream = ? AND number = ?")
            putPosition = try connection.prepare(
                """
                UPDATE stream SET epoch = ?, partition = ?, partitions = ?, covered = ?, complete = ?, position_hash = ?
                WHERE row = ?
                """
            )
            dropPosition = try connection.prepare(
                """
                UPDATE stream SET partition = NULL, partitions = NULL, covered = NULL,
                    state_seq = NULL, state_digest = NULL, state_head = NULL WHERE row = ?
                """
            )
            putEvent = try connection.prepare("INSERT OR REPLACE INTO event VALUES (?, ?, ?, ?)")
            dropEvents = try connection.prepare("DELETE FROM event WHERE stream = ? AND seq <= ?")
            putState = try connection.prepare(
                "UPDATE stream SET state_seq = ?, state_digest = ?, state_head = ?, state_hash = ? WHERE row = ?"
            )
            putObject = try connection.prepare("INSERT OR REPLACE INTO object VALUES (?, ?, ?, ?)")
            dropObject = try connection.prepare("DELETE FROM object WHERE stream = ? AND key = ?")
            dropObjects = try connection.prepare("DELETE FROM object WHERE stream = ?")
            putSiteRow = try connection.prepare("INSERT OR REPLACE INTO site VALUES (?, ?, ?, ?)")
            dropSiteRow = try connection.prepare("DELETE FROM site WHERE stream = ? AND site = ?")
            dropSiteRows = try connection.prepare("DELETE FROM site WHERE stream = ?")
            self.connection = connection
            self.file = file
        } catch {
            throw ReelError(error, path)
        }
    }

    /// Copies the WAL into the file, so that the file alone is a complete copy while no client has it open. If another
    /// file has replaced it, the WAL is left unchanged, so that the app can still use both.
    deinit {
        if file.hasFile() {
            try? connection.execute("UPDATE client SET in_use = 0")
            _ = try? connection.checkpoint(.truncate)
        } else {
            _ = try? connection.checkpoint(.passive)
        }
    }

    /// Marks in the file that its last commits are in a WAL. Returns true if the file is marked already and there is no
    /// such WAL.
    private static func take(_ connection: Connection, hadWAL: Bool) throws(SQLiteError) -> Bool {
        let wasInUse = try connection.integer("SELECT in_use FROM client WHERE row = 1") == 1
        if !wasInUse || !hadWAL { try connection.execute("UPDATE client SET in_use = 1") }
        return wasInUse && !hadWAL
    }

    // MARK: Reading

    /// The row of table `client`: log number, user and deployment of the device.
    struct ClientRow: Equatable {
        /// The highest log number that a node has named.
        var logNumber = 0
        /// The user that the file belongs to; nil: no user.
        var user: String?
        /// The deployment that the device belongs to; nil: it has met none.
        var deployment: Deployment?
    }

    /// Reads the row of table `client`. Throws `store_damaged` if its hash is wrong.
    func client() throws(ReelError) -> ClientRow {
        do throws(SQLiteError) { return try readClient() } catch { throw ReelError(error, "reading") }
    }

    private func readClient() throws(SQLiteError) -> ClientRow {
        let select = try connection.prepare("SELECT number, user, deployment, hash FROM client WHERE row = 1")
        guard try select.step() else { throw Self.damaged("client", "no row") }
        defer { select.reset() }
        let number = select.integer(0)
        let user = select.optionalText(1)
        let text = select.optionalText(2)
        let deployment = text.flatMap { Deployment($0) }
        guard (0...largestInteger).contains(number), (text == nil) == (deployment == nil),
            select.integer(3) == StoreRowHash.client(number: number, user: user, deployment: text)
        else {
            throw Self.damaged("client", [String(number), user, text].compactMap { $0 }.joined(separator: ", "))
        }
        return ClientRow(logNumber: Int(number), user: user, deployment: deployment)
    }

    /// Returns the number of waiting own events, by the name of each stream that the file knows.
    func queued() throws(ReelError) -> [String: Int] {
        do throws(SQLiteError) {
            let select = try connection.prepare(
                "SELECT name, (SELECT count(*) FROM outbox WHERE outbox.stream = stream.row) FROM stream"
            )
            var queued: [String: Int] = [:]
            while try select.step() { queued[select.text(0)] = Int(select.integer(1)) }
            return queued
        } catch {
            throw ReelError(error, "reading")
        }
    }

    // MARK: Writing

    /// Commits everything that `body` writes in one transaction.
    ///
    /// - Parameters:
    ///   - durably: true to return only when the data is on the disk.
    ///   - body: writes the changes.
    /// - Throws: `store_lost` if the files are not at their place, before or after. Another `ReelError` if the commit
    ///   failed.
    func commit(durably: Bool, _ body: () throws(SQLiteError) -> Void) throws(ReelError) {
        try file.checkThatItIsThere()
        do throws(SQLiteError) {
            try transaction(durably: durably, body)
        } catch {
            throw ReelError(error, "commit")
        }
        try file.checkThatItIsThere()
        // The commit is safe in the WAL even if the disk has no space for the copy: the next commit tries again.
        if connection.walFrames > Self.walFramesMax { _ = try? connection.checkpoint(.passive) }
    }

    private func transaction(durably: Bool, _ body: () throws(SQLiteError) -> Void) throws(SQLiteError) {
        if durably != isFull {
            try connection.execute("PRAGMA synchronous = \(durably ? "FULL" : "NORMAL")")
            isFull = durably
        }
        try connection.transaction(body)
    }

    /// Changes the row of table `client`. Call it inside `commit`.
    func changeClient(_ change: (inout ClientRow) -> Void) throws(SQLiteError) {
        var client = try readClient()
        change(&client)
        let (number, deployment) = (Int64(client.logNumber), client.deployment?.description)
        putClient.bind(1, number)
        putClient.bind(2, client.user)
        putClient.bind(3, deployment)
        putClient.bind(4, StoreRowHash.client(number: number, user: client.user, deployment: deployment))
        try putClient.run()
    }

    static func damaged(_ table: String, _ found: String) -> SQLiteError {
        .corrupt("found \(found.prefix(80).debugDescription) in table \(table)")
    }
}

@available(*, unavailable)
extension DeviceStore: Sendable {}

extension ReelError {
    /// Creates the error for an SQLite error of a device's store. `doing`: what the store did.
    init(_ error: SQLiteError, _ doing: String) {
        let (code, advice): (ErrorCode, String) =
            switch error.kind {
            case .locked: (.storeBusy, "; another process, or another client of this one, has the store open")
            case .full: (.storeFull, "; make room on the disk")
            case .notADatabase: (.storeFormat, "; the file is not a store of this version: use another file")
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
        self.init(code, "the device's store, \(doing): \(error)\(advice)")
    }
}
