internal import CLinux

/// The identity of a file, independent of its name. A rename and a hard link keep it; a copy has another one.
///
/// The device number is left out: it may change with each start of the machine. The inode alone is not enough. A file
/// system soon reuses the number of a removed file, for example for the backup that replaces it.
struct FileIdentity: Equatable, Sendable {
    /// The inode number of the file.
    var inode: Int64
    /// When the file was created, in nanoseconds since 1970; 0: the file system does not say.
    var bornNs: Int64

    /// Returns the identity of the file at a path, and the number of its names; nil: there is no file.
    static func look(at path: String) -> (identity: FileIdentity, names: Int64)? {
        var (identity, names) = (FileIdentity(inode: 0, bornNs: 0), Int64(0))
        guard reel_file_identity(path, &identity.inode, &identity.bornNs, &names) == 0 else { return nil }
        return (identity, names)
    }

    /// True if both can be the same file.
    func matches(_ other: FileIdentity) -> Bool {
        inode == other.inode && (bornNs == other.bornNs || bornNs == 0 || other.bornNs == 0)
    }
}
