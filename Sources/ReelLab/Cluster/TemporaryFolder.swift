import Glibc

/// A new folder in the system's folder for temporary files. It is removed with its content when the last reference to
/// this object is released, or with this process.
public final class TemporaryFolder {
    /// The path of the folder.
    public let path: String
    /// True to keep the folder.
    public var keep = false {
        didSet { if keep { OrphanWatch.left(path) } }
    }

    /// Creates the folder; its name begins with `prefix`.
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
        OrphanWatch.made(path)
    }

    deinit {
        guard !keep else { return }
        Self.removeAll(path)
        OrphanWatch.left(path)
    }

    private static func removeAll(_ path: String) {
        for name in Files.names(in: path) where unlink("\(path)/\(name)") != 0 {
            removeAll("\(path)/\(name)")
        }
        rmdir(path)
    }
}
