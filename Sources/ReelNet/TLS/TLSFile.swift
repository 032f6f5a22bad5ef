import Glibc

/// A file that TLS needs.
enum TLSFile {
    /// Throws `certificate` if it cannot be opened, with the system's reason: OpenSSL's own is of little help.
    static func check(_ path: String, _ what: String) throws(NetError) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw NetError(.certificate, "\(what) \(path) cannot be read: \(String(cString: strerror(errno)))")
        }
        close(descriptor)
    }
}
