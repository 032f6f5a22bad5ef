internal import Glibc
internal import ReelCore

extension LogError {
    /// What the operating system refused.
    init(errno number: Int32, _ doing: String) {
        let advice =
            switch number {
            case EMFILE: "; this process has too few file descriptors: raise `ulimit -n`"
            case ENFILE: "; the machine has no file descriptor left"
            case ENOSPC, EDQUOT: "; there is no room on the disk: it works again when there is"
            case EROFS:
                "; who reads a log writes beside it, too: copy the file, with its -wal if there is one, to where this"
                    + " user can write, and name the copy"
            case EACCES, EPERM: "; this user must be able to write the file and its folder"
            default: ""
            }
        self.init(.logUnavailable, "cannot \(doing): \(String(cString: strerror(number)))\(advice)")
        isLasting = [EACCES, EPERM, EROFS, ENOENT, ENOTDIR, EISDIR, ELOOP, ENAMETOOLONG].contains(number)
    }
}
