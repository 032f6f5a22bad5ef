internal import ReelCore
internal import ReelSQLite

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// The location of a device's store in the file system. It is checked before the store is opened. Afterwards this type
/// detects that the files were removed or replaced.
///
/// Data that is written to a file without a name is lost with the process. Only `stat` and `access` are used; see
/// `FileLook`.
struct StoreFile {
    /// A file that existed when the store was opened.
    private struct Part {
        var path: String
        var identity: FileLook.Identity
        /// The largest size found. Neither file shrinks while a client has it open.
        var size: Int64

        init?(_ path: String) {
            guard let look = FileLook(path) else { return nil }
            (self.path, identity, size) = (path, look.identity, look.size)
        }

        /// Returns what has happened to the file; nil: it is unchanged.
        mutating func change() -> String? {
            guard let look = FileLook(path) else { return "found no file at \(path)" }
            guard look.identity == identity else { return "found another file at \(path)" }
            guard look.size >= size else { return "found \(look.size) bytes in \(path), expected at least \(size)" }
            size = look.size
            return nil
        }
    }

    /// The absolute path. Links in it are not resolved, so that a link that is changed later is detected.
    let path: String
    /// True if there was a WAL with content next to the file before the store was opened.
    let hadWAL: Bool
    private var file: Part?
    private var wal: Part?

    /// Checks the location of a store that is to be opened or created. Throws `store_failed` if this user cannot use
    /// it, and `store_lost` if there is a WAL without its file.
    init(_ path: String) throws(ReelError) {
        guard !path.isEmpty else { throw Self.failed("found an empty path, expected the path of a file") }
        guard !path.utf8.contains(0) else { throw Self.failed("found a path with a NUL, expected the path of a file") }
        self.path = path.utf8.first == UInt8(ascii: "/") ? path : try Self.workingFolder() + "/" + path
        let folder = Self.folder(of: self.path)
        guard let found = FileLook(folder) else {
            throw Self.failed("found no folder \(folder); make it first")
        }
        guard !found.isFile else { throw Self.failed("found a file at \(folder), expected a folder") }
        let file = FileLook(self.path)
        if let file {
            guard file.isFile else { throw Self.failed("found a folder or a device at \(path), expected a file") }
            guard access(self.path, R_OK | W_OK) == 0 else {
                throw Self.failed("this user may not read and write \(path)")
            }
        }
        let resolved = Self.resolved(self.path) ?? self.path
        // SQLite creates a file next to the store.
        guard access(Self.folder(of: resolved), W_OK | X_OK) == 0 else {
            throw Self.failed("this user may not write in the folder \(Self.folder(of: resolved))")
        }
        let walBytes = FileLook(resolved + "-wal")?.size ?? 0
        hadWAL = walBytes > 0
        // SQLite would delete the WAL of an empty file.
        guard !hadWAL || file?.size ?? 0 > 0 else {
            throw ReelError(
                .storeLost,
                "the device's store: found \(walBytes) bytes in \(resolved)-wal, and no file that they belong to; bring"
                    + " the file back, or move the -wal away"
            )
        }
    }

    /// Remembers the files of a store that was opened. `resolved`: the path with all links resolved, as SQLite has it.
    mutating func opened(resolved: String) {
        file = Part(path)
        wal = Part(resolved + "-wal")
    }

    /// Returns true if the file itself is at its place.
    mutating func hasFile() -> Bool { file?.change() == nil }

    /// Throws `store_lost` if one of the files is not at its place.
    mutating func checkThatItIsThere() throws(ReelError) {
        guard let change = file == nil || wal == nil ? "found no file" : file?.change() ?? wal?.change() else { return }
        throw ReelError(
            .storeLost,
            "the device's store was removed, replaced, moved or cut while it was open: \(change)"
        )
    }

    private static func failed(_ reason: String) -> ReelError {
        ReelError(.storeFailed, "the device's store: \(reason)")
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
