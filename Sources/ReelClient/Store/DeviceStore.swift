internal import ReelCore
internal import ReelSQLite

/// The device's SQLite file: for each stream the queue of own events, and what was received: a folded state in rows,
/// the events behind it, and the ranges of seq that both prove; for all of them the log's number and the deployment.
///
/// Position and data change in one transaction. What an app was promised (an event in the queue, an op that was given)
/// waits for the disk; what can be received again does not, but stays behind it in the file, so that a lost end of the
/// file is an older moment, never a mixed one. One process at a time.
final class DeviceStore {
    /// The WAL is copied into the file when it has grown to so many pages.
    private static let walFramesMax = 1_000

    let connection: Connection
    private(set) var file: StoreFile
    private var isFull = true
    /// True if the file says that a client has left a WAL beside it, and none was there: the last commits are lost.
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

    /// Opens the file, or makes it if `makesFile`. Throws `store_busy`, `store_full`, `store_failed`, `store_format`,
    /// `store_damaged` or `store_lost` if that is not possible.
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
            // From now on the file itself says that a WAL belongs to it.
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

    /// Copies the WAL into the file, so that the file alone is a whole copy while no client has it open. Where another
    /// file lies in its place, the WAL is left as it is, for whatever the app makes of both.
    deinit {
        if file.hasFile() {
            try? connection.execute("UPDATE client SET in_use = 0")
            _ = try? connection.checkpoint(.truncate)
        } else {
            _ = try? connection.checkpoint(.passive)
        }
    }

    /// Notes in the file that its last commits are in a WAL. True if it says so already and there is no such WAL.
    private static func take(_ connection: Connection, hadWAL: Bool) throws(SQLiteError) -> Bool {
        let wasInUse = try connection.integer("SELECT in_use FROM client WHERE row = 1") == 1
        if !wasInUse || !hadWAL { try connection.execute("UPDATE client SET in_use = 1") }
        return wasInUse && !hadWAL
    }

    // MARK: Reading

    /// The row of table `client`: log number, user and deployment of the device.
    struct ClientRow: Equatable {
        /// The highest number of a log that a node was at.
        var logNumber = 0
        /// The user to whom the file belongs; nil: no user.
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

    /// By the name of each stream that the file knows: how many own events wait in it.
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

    /// Commits what the body writes as one; `durably`: it returns when the disk has it. Throws `store_lost` if the
    /// files are not where they were, before or after.
    func commit(durably: Bool, _ body: () throws(SQLiteError) -> Void) throws(ReelError) {
        try file.checkThatItIsThere()
        do throws(SQLiteError) {
            try transaction(durably: durably, body)
        } catch {
            throw ReelError(error, "commit")
        }
        try file.checkThatItIsThere()
        // What is committed is kept in the WAL, also where there is no room to copy it: the next commit tries again.
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
    /// What SQLite said of a device's store.
    init(_ error: SQLiteError, _ doing: String) {
        let (code, advice): (ErrorCode, String) =
            switch error.kind {
            case .locked: (.storeBusy, "; another process, or another client of this one, has the store open")
            case .full: (.storeFull, "; make room on the disk")
            case .notADatabase: (.storeFormat, "; the file is not a store of this version: use another file")
            // A statement that does not fit the tables: they are not those that were made.
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
