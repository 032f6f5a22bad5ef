import Glibc
import ReelSQLite
import Synchronization

/// Where a partition's file lies. Opening it for a read and putting it aside take turns, so that no reader ever gets
/// the pages of one file with the WAL of the next.
final class PartitionFileSlot: Sendable {
    /// Why a file could not be put aside.
    struct NotPutAside: Error {
        /// What stood in the way, and what to do.
        var reason: String
    }

    /// So many files are kept aside; then somebody has to look at them.
    static let asideMost = 8

    let path: String
    /// How many files were put aside while the node ran: which file lies here now.
    private let generation = Mutex(0)

    init(_ path: String) {
        self.path = path
    }

    /// Which file lies here now.
    var current: Int { generation.withLock { $0 } }

    /// A connection within a read that has begun: it holds the file that it opened, whatever lies here later.
    func beginRead() throws -> (Connection, StoredPosition) {
        try generation.withLock { _ in
            let connection = try Connection(path: path, mode: .readOnly, busyMs: 1_000)
            try connection.beginRead()
            return (connection, try StoredPosition(reading: connection))
        }
    }

    /// Renames the file with its WAL, so that nothing is mixed and nothing is lost, and says what it is called now.
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
            // The file first: SQLite drops a WAL that it finds without its file, and never reads it into another one.
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
