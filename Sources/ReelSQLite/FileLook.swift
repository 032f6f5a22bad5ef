#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The metadata of the file at a path, from `stat`.
///
/// It opens no file. To close a descriptor of a database's file would release all locks that SQLite holds on that file
/// for the whole process.
public struct FileLook: Sendable {
    /// The identity of a file, independent of its name.
    public struct Identity: Equatable, Sendable {
        private let device: UInt64
        private let inode: UInt64

        fileprivate init(device: UInt64, inode: UInt64) {
            self.device = device
            self.inode = inode
        }
    }

    /// The identity of the file that the path resolves to.
    public let identity: Identity
    /// The size in bytes.
    public let size: Int64
    /// True for a regular file, false for a folder or a device.
    public let isFile: Bool

    /// Reads the metadata of a path and follows links. Returns nil if nothing is found there; `errno` has the reason.
    public init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Reads the metadata of an open file.
    public init?(descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    private init(_ status: stat) {
        identity = Identity(device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(status.st_ino))
        size = Int64(status.st_size)
        isFile = status.st_mode & S_IFMT == S_IFREG
    }
}
