import Glibc

/// A file that a person named, or standard input.
enum InputFile {
    /// All bytes of the file; `-` is standard input. Ends with 4 where it cannot be read.
    static func read(_ path: String) throws(Complaint) -> [UInt8] {
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

    private static func unreadable(_ path: String) -> Complaint {
        Complaint(.badData, "`\(path)` cannot be read: \(String(cString: strerror(errno)))")
    }
}
