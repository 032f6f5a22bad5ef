import Glibc

/// A file that a person named, or standard input.
enum InputFile {
    /// All bytes of the file; `-` is standard input. Ends with 1 where it is missing or may not be read.
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

    /// How a command ends that could not use one of these files: with 1 where one is missing or may not be read, else
    /// with 4, for what it holds.
    static func code(ofUseless paths: [String?]) -> ExitCode {
        paths.allSatisfy { $0.map { access($0, R_OK) == 0 } ?? true } ? .badData : .failed
    }
}
