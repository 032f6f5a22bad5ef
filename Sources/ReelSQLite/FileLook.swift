#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// The file at a path, as `stat` shows it. Nothing is opened: a descriptor of a database's file that is closed takes
/// away all locks that SQLite holds on the file for the whole process.
public struct FileLook: Sendable {
    /// The identity of a file, whatever its name.
    public struct Identity: Equatable, Sendable {
        private let device: UInt64
        private let inode: UInt64

        fileprivate init(device: UInt64, inode: UInt64) {
            self.device = device
            self.inode = inode
        }
    }

    /// The identity of the file that the path leads to.
    public let identity: Identity
    /// Its size in bytes.
    public let size: Int64
    /// True for a file, false for a folder or a device.
    public let isFile: Bool

    /// Looks at a path, through links; nil if nothing can be found there, and `errno` says why.
    public init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        identity = Identity(device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(status.st_ino))
        size = Int64(status.st_size)
        isFile = status.st_mode & S_IFMT == S_IFREG
    }
}
