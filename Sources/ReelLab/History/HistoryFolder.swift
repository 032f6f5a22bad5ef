import Glibc
import ReelCore
import Synchronization

/// A folder of histories: one file for each client, node or driver. docs/reference/history.md says what stands in them.
public final class HistoryFolder: Sendable {
    /// Where it is.
    public let path: String
    /// It was not there before.
    private let isOwn: Bool
    private let sites = Mutex<[Site: Int]>([:])
    private let histories = Mutex<[History]>([])

    /// Makes the folder if it is not there. Throws where it cannot be made, or holds histories already: those of two
    /// runs are not one.
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

    /// A history of this party. The name is the file's, so letters, digits, `-`, `_` and `.`; another character
    /// becomes `-`.
    public func history(of name: String, _ kind: History.Kind) -> History {
        let file = String(name.map { $0.isASCII && ($0.isLetter || $0.isNumber || "-_.".contains($0)) ? $0 : "-" })
        let history = History(folder: self, path: "\(path)/\(file)\(History.suffix)", name: name, kind: kind)
        histories.withLock { $0.append(history) }
        return history
    }

    /// Writes what has been gathered. Call it about once a second: what was not written when the process is killed is
    /// no evidence. Throws where a file cannot be written.
    public func flush() throws(ChildProcess.Failure) {
        for history in histories.withLock({ $0 }) { try history.flush() }
    }

    /// Removes the histories of this kind, and the folder if the run has made it and nobody else writes there. Call it
    /// where they recorded nothing, and write no more of the kind afterwards.
    func discard(_ kind: History.Kind) {
        let isEmpty = histories.withLock { histories in
            for history in histories where history.kind == kind { history.discard() }
            histories.removeAll { $0.kind == kind }
            return histories.isEmpty
        }
        if isEmpty, isOwn { rmdir(path) }
    }

    /// Keeps other evidence: the snapshot of a node, the dump of a log. What cannot be written is none.
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

    /// The number that stands for a site in all files of the folder.
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
