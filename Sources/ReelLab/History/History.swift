import Glibc
import ReelCore
import Synchronization

/// What one party saw and did, a line of JSON for each, gathered in memory and appended to its file. From any thread.
///
/// It is evidence for `reel check`, which knows nothing of this type: docs/reference/history.md is what both keep to.
public final class History: Sendable {
    /// Who writes it.
    public enum Kind: String, Sendable {
        /// A client that publishes or listens.
        case client
        /// Somebody who asks a node what it holds.
        case node
        /// The one who starts and kills.
        case driver
    }

    /// How the name of a history's file ends.
    public static let suffix = ".history.jsonl"

    private struct Pending {
        var bytes: [UInt8] = []
        /// Sites whose number has been explained in the file.
        var explained: Set<Int> = []
        var failure: ChildProcess.Failure?
        /// How many lines there are.
        var lines = 1
        var hasEnded = false
    }

    let kind: Kind
    private let folder: HistoryFolder
    private let path: String
    private let pending: Mutex<Pending>

    /// So much is gathered before it is written.
    private static let gathered = 64 << 10

    init(folder: HistoryFolder, path: String, name: String, kind: Kind) {
        self.kind = kind
        self.folder = folder
        self.path = path
        var line = JSONObjectWriter()
        line.member("e", "begin")
        line.member("ms", Clock.nowMs())
        line.member("history", 1)
        line.member("kind", kind.rawValue)
        line.member("wall", Clock.wallMs())
        line.member("who", name)
        pending = Mutex(Pending(bytes: line.finishLine()))
    }

    /// Appends a line: what happened, when, and its members.
    func write(_ what: String, about sites: [Site] = [], _ members: (inout JSONObjectWriter) -> Void) {
        let now = Clock.nowMs()
        pending.withLock { pending in
            guard !pending.hasEnded else { return }
            for site in sites { explain(site, &pending) }
            pending.bytes.appendObject { line in
                line.member("e", what)
                line.member("ms", now)
                members(&line)
            }
            pending.bytes.append("\n")
            pending.lines += 1
            guard pending.bytes.count >= Self.gathered else { return }
            append(&pending)
        }
    }

    /// Appends the last line, which says how many lines stand before it.
    func writeEnd(_ members: (inout JSONObjectWriter) -> Void) {
        let now = Clock.nowMs()
        pending.withLock { pending in
            guard !pending.hasEnded else { return }
            pending.hasEnded = true
            let before = pending.lines
            pending.bytes.appendObject { line in
                line.member("e", "end")
                line.member("ms", now)
                line.member("lines", before)
                members(&line)
            }
            pending.bytes.append("\n")
        }
    }

    /// The number of a site in this folder's files.
    func number(of site: Site) -> Int { folder.number(of: site) }

    private func explain(_ site: Site, _ pending: inout Pending) {
        let number = folder.number(of: site)
        guard pending.explained.insert(number).inserted else { return }
        pending.bytes.appendObject { line in
            line.member("e", "site")
            line.member("n", number)
            line.member("site") { $0.append(quoted: site) }
        }
        pending.bytes.append("\n")
        pending.lines += 1
    }

    func flush() throws(ChildProcess.Failure) {
        let failure = pending.withLock { pending in
            if !pending.bytes.isEmpty { append(&pending) }
            return pending.failure
        }
        if let failure { throw failure }
    }

    /// Takes back what has been written.
    func discard() {
        pending.withLock { pending in
            pending.bytes.removeAll()
            _ = unlink(path)
        }
    }

    /// The file is open only for this moment: thousands of clients have a file each.
    private func append(_ pending: inout Pending) {
        defer { pending.bytes.removeAll(keepingCapacity: true) }
        guard pending.failure == nil else { return }
        let file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        var written = 0
        while file >= 0, written < pending.bytes.count {
            let count = pending.bytes.withUnsafeBytes {
                Glibc.write(file, $0.baseAddress! + written, $0.count - written)
            }
            if count > 0 { written += count } else if errno != EINTR { break }
        }
        if written < pending.bytes.count {
            pending.failure = ChildProcess.Failure(
                description: "the history `\(path)` cannot be written: \(String(cString: strerror(errno)))"
            )
        }
        if file >= 0 { close(file) }
    }
}
