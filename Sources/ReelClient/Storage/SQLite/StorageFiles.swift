internal import ReelCore
internal import ReelSQLite

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The location of an SQLite storage in the file system. It is checked before the storage is opened. Afterwards this
/// type detects that the files were removed, replaced, moved or cut.
///
/// Data that is written to a file without a name is lost with the process. Only `stat` and `access` are used; see
/// `FileLook`.
struct StorageFiles: Sendable {
    /// A file that belongs to an open storage.
    private struct Part: Sendable {
        var path: String
        var identity: FileLook.Identity
        /// The least size that the file has until this client changes it again.
        var sizeMin: Int64

        init?(_ path: String) {
            guard let look = FileLook(path) else { return nil }
            (self.path, identity, sizeMin) = (path, look.identity, look.size)
        }

        /// Returns what has happened to the file; nil: it is at its place. Remembers its size.
        mutating func change(sizeMin: Int64) -> String? {
            guard let look = FileLook(path) else { return "found no file at \(path)" }
            guard look.identity == identity else { return "found another file at \(path)" }
            guard look.size >= sizeMin else {
                return "found \(look.size) bytes in \(path), expected at least \(sizeMin)"
            }
            self.sizeMin = look.size
            return nil
        }
    }

    /// The absolute path. Links in it are not resolved, so that a link that is changed later is detected.
    let path: String
    /// The path with all links resolved, as SQLite has it.
    private(set) var resolved: String
    /// True if there was a WAL with content next to the file before the storage was opened.
    let hadWAL: Bool
    private var file: Part?
    private var wal: Part?

    /// Checks the location of a storage that is to be opened or created. Throws `store_failed` if this user cannot use
    /// it, and `store_lost` if there is a WAL without its file.
    init(_ path: String) throws(ReelError) {
        guard !path.isEmpty else { throw Self.failed("found an empty path, expected the path of a file") }
        guard !path.utf8.contains(0) else { throw Self.failed("found a path with a NUL, expected the path of a file") }
        self.path = path.utf8.first == UInt8(ascii: "/") ? path : try Self.workingFolder() + "/" + path
        let folder = Self.folder(of: self.path)
        guard let found = FileLook(folder) else { throw Self.failed("found no folder \(folder); make it first") }
        guard !found.isFile else { throw Self.failed("found a file at \(folder), expected a folder") }
        let file = FileLook(self.path)
        if let file {
            guard file.isFile else { throw Self.failed("found a folder or a device at \(path), expected a file") }
            guard access(self.path, R_OK | W_OK) == 0 else {
                throw Self.failed("this user may not read and write \(path)")
            }
        }
        resolved = Self.resolved(self.path) ?? self.path
        // SQLite creates files next to the storage.
        guard access(Self.folder(of: resolved), W_OK | X_OK) == 0 else {
            throw Self.failed("this user may not write in the folder \(Self.folder(of: resolved))")
        }
        let walBytes = FileLook(resolved + "-wal")?.size ?? 0
        hadWAL = walBytes > 0
        // SQLite would delete the WAL of an empty file.
        guard !hadWAL || file?.size ?? 0 > 0 else {
            throw ReelError(
                .storeLost,
                "the device's storage: found \(walBytes) bytes in \(resolved)-wal, and no file that they belong to;"
                    + " bring the file back, or move the -wal away"
            )
        }
    }

    /// Remembers the files of a storage that was opened. `resolved`: the path as SQLite has it.
    mutating func opened(resolved: String) {
        self.resolved = resolved
        file = Part(path)
        wal = Part(resolved + "-wal")
    }

    /// Remembers the present sizes, after this client has changed the files.
    mutating func noteSizes() {
        if let path = file?.path, let size = FileLook(path)?.size { file?.sizeMin = size }
        if let path = wal?.path, let size = FileLook(path)?.size { wal?.sizeMin = size }
    }

    /// Returns true if the file itself is at its place.
    func hasFile() -> Bool {
        guard var part = file else { return false }
        return part.change(sizeMin: file?.sizeMin ?? 0) == nil
    }

    /// Throws `store_lost` if one of the files is not at its place, or is shorter than this client has left it.
    mutating func check() throws(ReelError) {
        try check(fileMin: file?.sizeMin ?? 0, walMin: wal?.sizeMin ?? 0)
    }

    /// Throws `store_lost` if one of the files is not at its place after a commit of this client. `walFrames`: the
    /// frames that the WAL contains.
    mutating func check(walFrames: Int, pageBytes: Int) throws(ReelError) {
        // A WAL has a header of 32 bytes, and one of 24 bytes before each page.
        try check(fileMin: 0, walMin: Int64(walFrames > 0 ? 32 + walFrames * (24 + pageBytes) : 0))
    }

    /// Throws `store_lost` if one of the files is not at its place. A commit may change their sizes meanwhile.
    func checkIdentity() throws(ReelError) {
        var files = self
        try files.check(fileMin: 0, walMin: 0)
    }

    private mutating func check(fileMin: Int64, walMin: Int64) throws(ReelError) {
        let isOpen = file != nil && wal != nil
        guard let change = isOpen ? file?.change(sizeMin: fileMin) ?? wal?.change(sizeMin: walMin) : "found no file"
        else { return }
        throw ReelError(
            .storeLost,
            "the device's storage was removed, replaced, moved or cut while it was open: \(change)"
        )
    }

    /// Removes the files, and the link to them. Throws `store_failed` if that is not possible, and `store_lost` if
    /// another file is at their place.
    ///
    /// The WAL is removed first: a WAL without its file counts as the rest of a lost storage.
    func remove() throws(ReelError) {
        guard hasFile() || FileLook(path) == nil else {
            throw ReelError(.storeLost, "the device's storage: found another file at \(path), which was not deleted")
        }
        // The WAL may be the only place of the last commits, as where a checkpoint has failed. So the file is emptied
        // first: a process that ends in between leaves an empty storage, and not an older state.
        _ = truncate(resolved, 0)
        for path in [resolved + "-wal", resolved, resolved + "-shm", path] where unlink(path) != 0 && errno != ENOENT {
            throw Self.failed("deleting \(path): \(String(cString: strerror(errno)))")
        }
    }

    private static func failed(_ reason: String) -> ReelError {
        ReelError(.storeFailed, "the device's storage: \(reason)")
    }

    private static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/"), slash > path.startIndex else { return "/" }
        return String(path[..<slash])
    }

    private static func resolved(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    private static func workingFolder() throws(ReelError) -> String {
        guard let folder = getcwd(nil, 0) else { throw failed("the process has no working folder") }
        defer { free(folder) }
        return String(cString: folder)
    }
}
