internal import Glibc
internal import ReelCore

extension LogError {
    /// Creates the error for a failed call of the operating system, from its `errno`.
    init(errno number: Int32, _ doing: String) {
        let advice =
            switch number {
            case EMFILE: "; this process has too few file descriptors: raise `ulimit -n`"
            case ENFILE: "; the machine has no file descriptor left"
            case ENOSPC, EDQUOT: "; there is no room on the disk: it works again when there is"
            case EROFS:
                "; reading a log also writes files next to it: copy the file, with its -wal if there is one, to a"
                    + " folder that this user can write, and name the copy"
            case EACCES, EPERM: "; this user must be able to write the file and its folder"
            default: ""
            }
        self.init(.logUnavailable, "cannot \(doing): \(String(cString: strerror(number)))\(advice)")
        isLasting = [EACCES, EPERM, EROFS, ENOENT, ENOTDIR, EISDIR, ELOOP, ENAMETOOLONG].contains(number)
    }
}
