internal import ReelSQLite

/// What a log's file says of itself: the one row of the table `file`.
struct FileRow {
    /// The file that it was last opened as.
    var identity: FileIdentity
    /// A process has it open, or did not close it in good order: the last commits are in the `-wal`.
    var isOpen = false
    /// How often it was closed in good order. The lock file beside it says the same number.
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

    /// What is doubtful about the file that has this row, as it is found; nil: nothing.
    func doubt(_ present: FileIdentity, hadWAL: Bool, closings: Int64) -> FileDoubt? {
        if !identity.matches(present) { return .copied }
        if closings > self.closings { return .rolledBack }
        return isOpen && !hadWAL ? .withoutWAL : nil
    }

    /// Writes the row in place of the one that is there. In a transaction.
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
