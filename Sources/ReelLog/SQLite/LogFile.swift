internal import Glibc
internal import ReelCore
internal import ReelSQLite

/// A log's file: what is in it, how it is made, and how it is recognised.
struct LogFile: Sendable {
    let path: String
    let epoch: Epoch
    let partitions: Int
    let lock: FileLock
    private let identity: Identity

    /// "Reel" in ASCII, where SQLite keeps a program's mark.
    private static let applicationID: Int64 = 0x5265_656c
    private static let version: Int64 = 1
    static let pageSize = 8192
    static let largestPartitionCount = 1024

    /// Opens the file, or makes it with `partitions` (nil: 4) if it is not there; who comes first makes it.
    init(path: String, partitions: Int?, walFrames: Int) throws(LogError) {
        if let partitions, !(1...Self.largestPartitionCount).contains(partitions) {
            throw LogError(.badRequest, "found \(partitions) partitions, expected 1 to \(Self.largestPartitionCount)")
        }
        try Self.refuseWhatIsNoFile(path)
        let lock = try FileLock(path: path + ".lock")
        let found = try lock.whileHeld { () throws(LogError) in
            let found = try Self.open(path, partitions: partitions)
            Self.lengthenWAL(path, frames: walFrames)
            return found
        }
        self.path = path
        self.lock = lock
        epoch = found.epoch
        self.partitions = found.partitions
        identity = try Identity(path)
        if let partitions, partitions != self.partitions {
            throw LogError(
                .badRequest,
                "found a log with \(self.partitions) partitions, expected \(partitions): \(path); their number is fixed"
            )
        }
    }

    /// A further connection to the file. Commits are made under the lock, checkpoints too.
    func connect(_ mode: Connection.Mode) throws(LogError) -> Connection {
        do throws(SQLiteError) {
            let connection = try Connection(path: path, mode: mode, busyMs: 2000)
            try connection.useWAL(.full)
            return connection
        } catch {
            throw LogError(error, path)
        }
    }

    /// Throws once another file lies at the path, or none: what is written to this one then would be lost.
    func checkThatItIsThere() throws(LogError) {
        guard (try? Identity(path)) == identity else {
            throw LogError(.epochChanged, "the file was removed or replaced while it was open: \(path)")
        }
    }

    /// The table of a partition.
    static func table(_ partition: Int) -> String { "records_\(partition)" }

    // MARK: Opening

    private static func refuseWhatIsNoFile(_ path: String) throws(LogError) {
        var status = stat()
        guard stat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw LogError(.damaged, "found a folder or device, expected a log's file: \(path)")
        }
        // A file that cannot be written would open for reading only, and fail much later.
        guard access(path, R_OK | W_OK) == 0 else { throw LogError(errno: errno, "write \(path)") }
    }

    private static func open(
        _ path: String,
        partitions: Int?
    ) throws(LogError) -> (epoch: Epoch, partitions: Int) {
        let found: Contents
        do throws(SQLiteError) {
            let connection = try Connection(path: path, mode: .create, busyMs: 2000)
            if let contents = try Contents(connection) {
                found = contents
            } else {
                found = try Contents(making: partitions ?? 4, with: connection)
            }
        } catch {
            throw LogError(error, path)
        }
        guard found.mark == applicationID else {
            throw LogError(.damaged, "found an SQLite database of another program, expected a log: \(path)")
        }
        guard found.version == version else {
            throw LogError(.damaged, "found a log of version \(found.version), expected \(version): \(path)")
        }
        guard let epoch = found.epoch, (1...largestPartitionCount).contains(found.partitions) else {
            throw LogError(.damaged, "the log's epoch or partitions are damaged: put the file aside: \(path)")
        }
        return (epoch, found.partitions)
    }

    /// What a file says of itself.
    private struct Contents {
        var mark: Int64
        var version: Int64
        var epoch: Epoch?
        var partitions = 0

        /// Nil: the file is empty.
        init?(_ connection: Connection) throws(SQLiteError) {
            mark = try connection.integer("PRAGMA application_id") ?? 0
            version = try connection.integer("PRAGMA user_version") ?? 0
            if mark == applicationID, version == LogFile.version {
                epoch = try connection.integer("SELECT epoch FROM log").map { Epoch(UInt64(bitPattern: $0)) }
                partitions = Int(try connection.integer("SELECT partitions FROM log") ?? 0)
            } else if mark == 0, try connection.integer("SELECT count(*) FROM sqlite_schema") == 0 {
                return nil
            }
        }

        /// Makes the tables in one transaction: a file is a log, or still empty.
        init(making partitions: Int, with connection: Connection) throws(SQLiteError) {
            mark = applicationID
            version = LogFile.version
            let epoch = Epoch(UInt64.random(in: 0...UInt64.max))
            self.epoch = epoch
            self.partitions = partitions
            try connection.execute("PRAGMA page_size = \(pageSize)")
            try connection.useWAL(.full)
            try connection.transaction { () throws(SQLiteError) in
                try connection.execute(
                    """
                    PRAGMA application_id = \(applicationID);
                    PRAGMA user_version = \(version);
                    CREATE TABLE log (epoch INTEGER NOT NULL, partitions INTEGER NOT NULL);
                    INSERT INTO log VALUES (\(Int64(bitPattern: epoch.value)), \(partitions));
                    CREATE TABLE nodes (id TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, role TEXT NOT NULL,
                        url TEXT NOT NULL, advertised TEXT, build TEXT NOT NULL, positions TEXT NOT NULL) WITHOUT ROWID;
                    """
                )
                for partition in 0..<partitions {
                    // The last seq of a row's records is its key, so new rows go to the right-most leaf, and the row
                    // that holds a seq is the first one at or above it.
                    try connection.execute(
                        """
                        CREATE TABLE \(table(partition))
                            (last INTEGER PRIMARY KEY, count INTEGER NOT NULL, records BLOB NOT NULL)
                        """
                    )
                }
            }
        }
    }

    /// Gives the WAL its full length at once. SQLite writes it from the start again after each checkpoint, so commits
    /// then overwrite and never lengthen a file, which halves what they wait for. Zeros behind the last frame mean
    /// nothing to SQLite. Without room for it nothing is lost but time.
    private static func lengthenWAL(_ path: String, frames: Int) {
        let file = Glibc.open(path + "-wal", O_RDWR | O_CLOEXEC)
        guard file >= 0 else { return }
        defer { Glibc.close(file) }
        let zeros = [UInt8](repeating: 0, count: 1 << 18)
        var end = Int(lseek(file, 0, SEEK_END))
        let wanted = frames * (pageSize + 24) + 32
        guard end < wanted else { return }
        while end < wanted {
            let written = pwrite(file, zeros, min(zeros.count, wanted - end), end)
            guard written > 0 else { return }
            end += written
        }
        fsync(file)
    }

    /// Which file it is, whatever its name.
    private struct Identity: Equatable {
        var device: dev_t
        var inode: ino_t

        init(_ path: String) throws(LogError) {
            var status = stat()
            guard stat(path, &status) == 0 else { throw LogError(errno: errno, "look at \(path)") }
            device = status.st_dev
            inode = status.st_ino
        }
    }
}

extension LogError {
    /// What SQLite said of a log's file.
    init(_ error: SQLiteError, _ path: String) {
        switch error.kind {
        case .corrupt:
            self.init(.damaged, "the log's file is damaged: put it aside, do not delete it: \(path): \(error)")
        case .notADatabase:
            self.init(.damaged, "found a file of another kind, expected a log: \(path): \(error)")
        case .full:
            self.init(.logUnavailable, "no room on the disk; it works again when there is: \(path): \(error)")
        case .readOnly, .cannotOpen:
            self.init(
                .logUnavailable,
                "the log's file cannot be opened or written: it and its folder must be writable, and file descriptors "
                    + "left: \(path): \(error)"
            )
        default:
            self.init(.logUnavailable, "\(path): \(error)")
        }
    }
}
