internal import ReelCore
internal import ReelSQLite

#if canImport(Glibc)
internal import Glibc
#endif

// The user that the file belongs to.
extension DeviceStore {
    /// Opens the file for a user, nil for none. A file without streams belongs to the first user that opens it.
    ///
    /// Throws `store_user` if it belongs to another user. A file that was used without a user, or was made by a version
    /// without users, belongs to no user. A user gets such a file only by `adopt`, because its waiting events may be
    /// another user's.
    func claim(for user: String?) throws(ReelError) {
        let owner = try client().user
        guard owner != user else { return }
        guard owner == nil, try isEmpty() else { throw ReelError(storeOf: owner, found: user) }
        try give(to: user)
    }

    /// Gives the file from one user to another. Does nothing if it already belongs to the other user.
    func adopt(from former: String?, to user: String) throws(ReelError) {
        let owner = try client().user
        if owner == user { return }
        guard owner == former else { throw ReelError(storeOf: owner, found: former) }
        try give(to: user)
    }

    /// Returns the streams in which a site of the file was given an op.
    func writtenStreams() throws(ReelError) -> [StreamName] {
        try reading { () throws(SQLiteError) in
            let select = try connection.prepare("SELECT name FROM stream WHERE next_op > 0 ORDER BY row")
            var names: [StreamName] = []
            while try select.step() { StreamName(select.text(0)).map { names.append($0) } }
            return names
        }
    }

    /// Deletes the file and the files next to it, while it is still locked against other processes. Throws
    /// `store_failed` if that is not possible.
    func deleteFiles() throws(ReelError) {
        // A WAL without its file counts as the rest of a lost store, unless it is empty.
        _ = try? connection.checkpoint(.truncate)
        let path = connection.path
        for path in [path, path + "-wal", path + "-shm", file.path] where unlink(path) != 0 && errno != ENOENT {
            let reason = String(cString: strerror(errno))
            throw ReelError(.storeFailed, "the device's store, deleting \(path): \(reason)")
        }
    }

    private func isEmpty() throws(ReelError) -> Bool {
        try reading { () throws(SQLiteError) in try connection.integer("SELECT count(*) FROM stream") == 0 }
    }

    private func give(to user: String?) throws(ReelError) {
        try commit(durably: true) { () throws(SQLiteError) in try changeClient { $0.user = user } }
    }

    private func reading<T>(_ body: () throws(SQLiteError) -> T) throws(ReelError) -> T {
        do throws(SQLiteError) { return try body() } catch { throw ReelError(error, "reading") }
    }
}

extension ReelError {
    fileprivate init(storeOf owner: String?, found user: String?) {
        func name(_ user: String?) -> String { user.map { "the user \($0.debugDescription)" } ?? "no user" }
        self.init(.storeUser, "the store belongs to \(name(owner)), found \(name(user))")
    }
}
