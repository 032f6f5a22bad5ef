import Glibc

/// A fresh folder under the system's folder for such things, removed with all in it when the last reference goes.
public final class TemporaryFolder {
    /// Where it is.
    public let path: String
    /// Leave it behind.
    public var keep = false

    /// Makes the folder; its name begins with `prefix`.
    public init(prefix: String) throws(ChildProcess.Failure) {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/\(prefix)XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw ChildProcess.Failure(
                description: "cannot make a folder in \(parent): \(String(cString: strerror(errno)));"
                    + " set TMPDIR to one that can be written"
            )
        }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        guard !keep else { return }
        Self.removeAll(path)
    }

    private static func removeAll(_ path: String) {
        if let folder = opendir(path) {
            while let entry = readdir(folder) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                if name == "." || name == ".." { continue }
                if entry.pointee.d_type == UInt8(DT_DIR) {
                    removeAll("\(path)/\(name)")
                } else {
                    unlink("\(path)/\(name)")
                }
            }
            closedir(folder)
        }
        rmdir(path)
    }
}
