import Glibc

/// The check of a file that TLS needs.
enum TLSFile {
    /// Checks that the file can be opened. OpenSSL's own reason would be of little help.
    ///
    /// - Throws: `certificate` with the system's reason.
    static func check(_ path: String, _ what: String) throws(NetError) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw NetError(.certificate, "\(what) \(path) cannot be read: \(String(cString: strerror(errno)))")
        }
        close(descriptor)
    }
}
