import CSQLite
import Glibc

/// A count of SQLite's waits for the disk. A VFS counts them; it differs from the usual one only in `xSync`.
enum SyncCounter {
    /// The number of waits so far.
    private(set) nonisolated(unsafe) static var count = 0

    private nonisolated(unsafe) static var vfs = sqlite3_vfs()
    private nonisolated(unsafe) static var usual: UnsafeMutablePointer<sqlite3_vfs>?
    /// The file methods with the counter, by the file methods of SQLite.
    private nonisolated(unsafe) static var methods:
        [UnsafePointer<sqlite3_io_methods>: UnsafePointer<sqlite3_io_methods>] =
            [:]
    private nonisolated(unsafe) static var usualSync:
        (@convention(c) (UnsafeMutablePointer<sqlite3_file>?, Int32) -> Int32)?

    /// Counts the waits of all files that are opened from now on.
    static func install() {
        guard let usual = sqlite3_vfs_find("unix") else { exit(3) }
        self.usual = usual
        vfs = usual.pointee
        vfs.zName = UnsafePointer(strdup("counting"))
        vfs.xOpen = { _, name, file, flags, outFlags in
            let result =
                SyncCounter.usual?.pointee.xOpen(SyncCounter.usual, name, file, flags, outFlags) ?? SQLITE_ERROR
            if result == SQLITE_OK, let file { SyncCounter.observe(file) }
            return result
        }
        withUnsafeMutablePointer(to: &vfs) { guard sqlite3_vfs_register($0, 1) == SQLITE_OK else { exit(3) } }
    }

    private static func observe(_ file: UnsafeMutablePointer<sqlite3_file>) {
        guard let given = file.pointee.pMethods else { return }
        if let known = methods[given] {
            file.pointee.pMethods = known
            return
        }
        let copy = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        copy.initialize(to: given.pointee)
        usualSync = given.pointee.xSync
        copy.pointee.xSync = { file, flags in
            SyncCounter.count += 1
            return SyncCounter.usualSync?(file, flags) ?? SQLITE_ERROR
        }
        methods[given] = UnsafePointer(copy)
        file.pointee.pMethods = UnsafePointer(copy)
    }
}
