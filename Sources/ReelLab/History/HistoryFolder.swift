import Glibc
import ReelCore
import Synchronization

/// A folder of histories: one file for each client, node or driver. docs/reference/history.md defines their format.
public final class HistoryFolder: Sendable {
    /// The path of the folder.
    public let path: String
    /// True if this object has created the folder.
    private let isOwn: Bool
    private let sites = Mutex<[Site: Int]>([:])
    private let histories = Mutex<[History]>([])

    /// Creates the folder if it does not exist. Throws if it cannot be created, or if it already contains histories:
    /// the histories of two runs must not be mixed.
    public init(_ path: String) throws(ChildProcess.Failure) {
        self.path = path
        isOwn = mkdir(path, 0o755) == 0
        guard isOwn || errno == EEXIST else {
            throw ChildProcess.Failure(
                description: "the folder `\(path)` cannot be made: \(String(cString: strerror(errno)))"
            )
        }
        if let name = Self.names(in: path).first(where: { $0.hasSuffix(History.suffix) }) {
            throw ChildProcess.Failure(
                description: "`\(path)` holds the histories of another run already (\(name)); name a fresh folder"
            )
        }
    }

    /// Returns a new history of this party. The name is also the file's, with letters, digits, `-`, `_` and `.`; any
    /// other character becomes `-`.
    public func history(of name: String, _ kind: History.Kind) -> History {
        let file = String(name.map { $0.isASCII && ($0.isLetter || $0.isNumber || "-_.".contains($0)) ? $0 : "-" })
        let history = History(folder: self, path: "\(path)/\(file)\(History.suffix)", name: name, kind: kind)
        histories.withLock { $0.append(history) }
        return history
    }

    /// Writes the collected lines. Call it about once a second: lines that were not written when the process is killed
    /// are lost. Throws if a file cannot be written.
    public func flush() throws(ChildProcess.Failure) {
        for history in histories.withLock({ $0 }) { try history.flush() }
    }

    /// Removes the histories of this kind. Removes the folder too if this run has created it and nothing else is in it.
    /// Call it if they recorded nothing, and do not write to them afterwards.
    func discard(_ kind: History.Kind) {
        let isEmpty = histories.withLock { histories in
            for history in histories where history.kind == kind { history.discard() }
            histories.removeAll { $0.kind == kind }
            return histories.isEmpty
        }
        if isEmpty, isOwn { rmdir(path) }
    }

    /// Keeps other evidence, such as the snapshot of a node or the dump of a log. Errors are ignored.
    public func keep(_ name: String, _ bytes: [UInt8]) {
        let file = open("\(path)/\(name)", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard file >= 0 else { return }
        defer { close(file) }
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { write(file, $0.baseAddress! + written, bytes.count - written) }
            if count > 0 { written += count } else if errno != EINTR { return }
        }
    }

    /// Returns the number of a site, which is the same in all files of the folder.
    func number(of site: Site) -> Int {
        sites.withLock { sites in
            if let number = sites[site] { return number }
            sites[site] = sites.count
            return sites.count - 1
        }
    }

    private static func names(in path: String) -> [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            names.append(
                withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
            )
        }
        return names
    }
}
