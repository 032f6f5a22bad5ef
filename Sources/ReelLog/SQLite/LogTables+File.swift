internal import ReelSQLite

// Checks that the file is the one that was opened before.
extension LogTables {
    /// Stores that a log of the file is opened. If the file is not the same as before, or lacks its WAL, it is marked
    /// as doubtful. The lock must be held.
    ///
    /// - Parameters:
    ///   - hadWAL: True if there was a WAL next to the file, or another process has the file open.
    ///   - closings: How many times the file was closed, according to the lock file.
    /// - Throws: `Unusable` if the file is open, or was not closed, under another of its names.
    func open(hadWAL: Bool, closings: Int64) throws {
        guard let (present, names) = FileIdentity.look(at: connection.path) else { return }
        var row = FileRow(identity: present)
        if let found = try FileRow(connection) { row = found }
        if row.isOpen, !hadWAL, names > 1 {
            throw Unusable(
                reason: "found a log's file of \(names) names that was not closed under this one: it is open under"
                    + " another name, or its -wal lies beside that",
                advice: "use that name"
            )
        }
        let doubt = row.doubt(present, hadWAL: hadWAL, closings: closings)
        if doubt == nil, row.isOpen { return }
        row.identity = present
        row.isOpen = true
        row.closings = max(closings, row.closings)
        row.doubt = row.doubt ?? doubt
        do throws(SQLiteError) {
            try write(row)
            // The file itself must say that a WAL belongs to it.
            try connection.checkpoint(.passive)
        } catch {
            // On a full disk the log can still be read, and the next opener finds the same doubt.
            if error.kind != .full { throw error }
        }
    }

    /// Accepts the file as complete. Parameters as in `open`.
    ///
    /// - Returns: The doubt about it, even if the file was not opened since; nil: there was none.
    func accept(hadWAL: Bool, closings: Int64) throws -> FileDoubt? {
        guard let (present, _) = FileIdentity.look(at: connection.path), var row = try FileRow(connection) else {
            return nil
        }
        guard let doubt = row.doubt ?? row.doubt(present, hadWAL: hadWAL, closings: closings) else { return nil }
        row.identity = present
        row.closings = max(closings, row.closings)
        row.doubt = nil
        try write(row)
        return doubt
    }

    private func write(_ row: FileRow) throws(SQLiteError) {
        try connection.transaction { () throws(SQLiteError) in try row.write(connection) }
    }
}
