import Glibc

/// An input file that the user named, or standard input.
enum InputFile {
    /// Reads the whole file; `-` is standard input.
    ///
    /// - Throws: a `CommandError` with exit code 1 if the file is missing or cannot be read.
    static func read(_ path: String) throws(CommandError) -> [UInt8] {
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(path) }
        defer { if path != "-" { close(descriptor) } }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 18)
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count > 0 {
                bytes += chunk[..<count]
            } else if count == 0 {
                return bytes
            } else if errno != EINTR {
                throw unreadable(path)
            }
        }
    }

    private static func unreadable(_ path: String) -> CommandError {
        CommandError(.failed, "`\(path)` cannot be read: \(String(cString: strerror(errno)))")
    }

    /// Returns the exit code of a command that cannot use one of the files `paths`: 1 if a file is missing or not
    /// readable; otherwise 4, because the content of a file is wrong.
    static func code(ofUseless paths: [String?]) -> ExitCode {
        paths.allSatisfy { $0.map { access($0, R_OK) == 0 } ?? true } ? .badData : .failed
    }
}
