internal import ReelSQLite

/// The description of a log's file in the file itself: the one row of the table `file`.
struct FileRow {
    /// The identity of the file when it was last opened.
    var identity: FileIdentity
    /// True if a process has the file open, or did not close it in order. The last commits are then in the `-wal`.
    var isOpen = false
    /// How many times the file was closed in order. The lock file next to it has the same number.
    var closings: Int64 = 0
    /// Why records may be missing; nil: no reason is known, or an operator has settled it.
    var doubt: FileDoubt?

    static let create = """
        CREATE TABLE file (inode INTEGER NOT NULL, born_ns INTEGER NOT NULL, is_open INTEGER NOT NULL,
            closings INTEGER NOT NULL, doubt TEXT)
        """
    static let readDoubt = "SELECT doubt FROM file"

    init(identity: FileIdentity) {
        self.identity = identity
    }

    /// Reads the row; nil: there is none.
    init?(_ connection: Connection) throws(SQLiteError) {
        let row = try connection.prepare("SELECT inode, born_ns, is_open, closings, doubt FROM file")
        guard try row.step() else { return nil }
        identity = FileIdentity(inode: row.integer(0), bornNs: row.integer(1))
        isOpen = row.integer(2) != 0
        closings = row.integer(3)
        doubt = row.optionalText(4).flatMap { FileDoubt(rawValue: $0) }
    }

    /// Returns the doubt about the file that holds this row; nil: there is none.
    ///
    /// - Parameters:
    ///   - present: The identity that the file has now.
    ///   - hadWAL: True if there was a WAL next to the file, or another process has the file open.
    ///   - closings: How many times the file was closed, according to the lock file.
    func doubt(_ present: FileIdentity, hadWAL: Bool, closings: Int64) -> FileDoubt? {
        if !identity.matches(present) { return .copied }
        if closings > self.closings { return .rolledBack }
        return isOpen && !hadWAL ? .withoutWAL : nil
    }

    /// Replaces the row. Call it inside a transaction.
    func write(_ connection: Connection) throws(SQLiteError) {
        try connection.execute("DELETE FROM file")
        let row = try connection.prepare("INSERT INTO file VALUES (?1, ?2, ?3, ?4, ?5)")
        row.bind(1, identity.inode)
        row.bind(2, identity.bornNs)
        row.bind(3, Int64(isOpen ? 1 : 0))
        row.bind(4, closings)
        row.bind(5, doubt?.rawValue)
        try row.run()
    }
}
