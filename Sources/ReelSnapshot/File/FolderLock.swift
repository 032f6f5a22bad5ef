import Glibc
import ReelCore

/// A lock of a folder for one process: two snapshot nodes never write the same files. The lock ends with the process.
final class FolderLock: Sendable {
    private let descriptor: Int32

    /// Makes the folder if it does not exist, and locks it. Throws at once if another process has locked it.
    init(folder: String) throws(SnapshotError) {
        try Self.make(folder)
        let path = folder + "/lock"
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw SnapshotError(.internal, "cannot open \(path): \(String(cString: strerror(errno)))")
        }
        // An earlier build made the lock file so that any user of the machine could lock it.
        var file = stat()
        if fstat(descriptor, &file) == 0, file.st_mode & 0o777 == 0o644 { fchmod(descriptor, 0o600) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let reason = errno
            throw SnapshotError(
                .internal,
                reason == EWOULDBLOCK
                    ? "the folder \(folder) is in use by another process; give each snapshot node a --data of its own"
                    : "cannot lock \(path): \(String(cString: strerror(reason)))"
            )
        }
    }

    deinit {
        close(descriptor)
    }

    /// Unlocks the folder, so that another process can lock it.
    func release() {
        flock(descriptor, LOCK_UN)
    }

    /// Makes a folder and its parents, accessible to this user only.
    private static func make(_ folder: String) throws(SnapshotError) {
        var status = stat()
        if stat(folder, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFDIR else {
                throw SnapshotError(.internal, "found a file at \(folder), expected a folder; name another --data")
            }
            return
        }
        if let slash = folder.lastIndex(of: "/"), slash != folder.startIndex {
            try make(String(folder[..<slash]))
        }
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else {
            throw SnapshotError(.internal, "cannot make the folder \(folder): \(String(cString: strerror(errno)))")
        }
    }
}
