import Glibc

/// Files and folders on the disk.
enum Files {
    /// Returns the names in a folder; none if it cannot be read.
    static func names(in folder: String) -> [String] {
        guard let opened = opendir(folder) else { return [] }
        defer { closedir(opened) }
        var names: [String] = []
        while let entry = readdir(opened) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    /// Returns the bytes of a file from `offset` on; none if it cannot be read.
    static func bytes(of path: String, from offset: Int = 0) -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = pread(file, &chunk, chunk.count, offset + bytes.count)
            guard count > 0 else { return bytes }
            bytes += chunk[..<count]
        }
    }

    /// Returns the size of a file in bytes; 0 if there is none.
    static func size(of path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_size : 0
    }

    /// Writes a file, and replaces its former content.
    static func write(_ bytes: [UInt8], to path: String) throws(ChildProcess.Failure) {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        defer { if file >= 0 { close(file) } }
        guard file >= 0, Glibc.write(file, bytes, bytes.count) == bytes.count else {
            throw ChildProcess.Failure(description: "cannot write \(path): \(String(cString: strerror(errno)))")
        }
    }
}
