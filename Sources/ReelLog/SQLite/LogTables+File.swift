internal import ReelSQLite

// Whether the file is the one that it was.
extension LogTables {
    /// Notes that a log of the file is opened: a file that is not the one that it was, or lacks its WAL, is doubtful
    /// from then on. `hadWAL`: there were records beside it; `closings`: how often it was closed, as the lock file
    /// says. The lock must be held.
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
            // On a full disk the log can be read nonetheless; the next opener finds the same.
            if error.kind != .full { throw error }
        }
    }

    /// Takes the file as it is for whole; returns what was doubtful about it, whether or not it was opened since, or
    /// nil. Arguments as in `open`.
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
