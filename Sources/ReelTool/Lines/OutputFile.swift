import Glibc

/// An output file that the user named.
enum OutputFile {
    /// Replaces the content of the file with `bytes`.
    ///
    /// - Throws: a `CommandError` with exit code 1 if the file cannot be written.
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

    /// Checks that the file can be written, and changes nothing.
    ///
    /// - Throws: a `CommandError` with exit code 1 if it cannot.
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
