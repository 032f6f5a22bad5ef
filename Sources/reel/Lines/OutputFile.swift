import Glibc

/// A file that a person wants to have.
enum OutputFile {
    /// Writes the bytes in place of what the file held. Ends with 1 where it cannot be written.
    static func write(_ bytes: [UInt8], to path: String) throws(CommandError) {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard file >= 0 else { throw unwritable(path) }
        defer { close(file) }
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress! + written, $0.count - written) }
            if count > 0 { written += count } else if errno != EINTR { throw unwritable(path) }
        }
    }

    /// Ends with 1 where the file could not be written now, and changes nothing.
    static func checkThatItCanBeWritten(_ path: String) throws(CommandError) {
        var status = stat()
        if stat(path, &status) == 0 {
            let isFolder = status.st_mode & S_IFMT == S_IFDIR
            if isFolder { errno = EISDIR }
            guard !isFolder, access(path, W_OK) == 0 else { throw unwritable(path) }
        } else {
            let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
            guard file >= 0 else { throw unwritable(path) }
            close(file)
            unlink(path)
        }
    }

    private static func unwritable(_ path: String) -> CommandError {
        CommandError(.failed, "`\(path)` cannot be written: \(String(cString: strerror(errno)))")
    }
}
