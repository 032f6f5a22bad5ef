import Glibc
import ReelSQLite
import Synchronization

/// The path of a partition's file. A lock separates opening the file for a read from setting it aside. So no reader
/// gets the pages of one file with the WAL of the next.
final class PartitionFileSlot: Sendable {
    /// The error of a file that could not be set aside.
    struct NotPutAside: Error {
        /// The obstacle, and the remedy.
        var reason: String
    }

    /// The maximum number of files that are set aside. An operator must remove them before another one is.
    static let asideMost = 8

    let path: String
    /// The number of files that were set aside while the node runs; it identifies the current file.
    private let generation = Mutex(0)

    init(_ path: String) {
        self.path = path
    }

    /// The generation of the current file.
    var current: Int { generation.withLock { $0 } }

    /// Returns a connection inside a read that has begun. The connection keeps the file that it opened, even if the
    /// file is set aside later.
    func beginRead() throws -> (Connection, StoredPosition) {
        try generation.withLock { _ in
            let connection = try Connection(path: path, mode: .readOnly)
            try connection.beginRead()
            return (connection, try StoredPosition(reading: connection))
        }
    }

    /// Renames the file together with its WAL, so that neither is lost or used with another file. Returns the new path.
    func putAside() throws(NotPutAside) -> String {
        try generation.withLock { generation throws(NotPutAside) in
            var number = 0
            while access("\(path).aside-\(number)", F_OK) == 0 { number += 1 }
            guard number < Self.asideMost else {
                throw NotPutAside(
                    reason: "found \(number) files \(path).aside-*; see what damages them, and remove them"
                )
            }
            let aside = "\(path).aside-\(number)"
            // Rename the file first. SQLite drops a WAL that it finds without its file, and never applies it to another
            // file.
            for suffix in ["", "-wal", "-shm"] where access(path + suffix, F_OK) == 0 {
                guard rename(path + suffix, aside + suffix) == 0 else {
                    throw NotPutAside(reason: "cannot rename \(path + suffix): \(String(cString: strerror(errno)))")
                }
            }
            generation += 1
            return aside
        }
    }
}
