import Glibc
import ReelBase
import ReelCore
import Synchronization

/// The observations and actions of one party, each as a line of JSON, collected in memory and appended to a file. From
/// any thread.
///
/// It is evidence for `reel check`, which does not use this type: docs/reference/history.md defines the format for
/// both.
public final class History: Sendable {
    /// The kind of party that writes a history.
    public enum Kind: String, Sendable {
        /// A client that publishes or listens.
        case client
        /// A program that asks nodes for their state.
        case node
        /// The program that starts and kills the processes.
        case driver
    }

    /// The suffix of the name of a history's file.
    public static let suffix = ".history.jsonl"

    private struct Pending {
        var bytes: [UInt8] = []
        /// The numbers of the sites that the file has explained.
        var explained: Set<Int> = []
        var failure: ChildProcess.Failure?
        /// The number of lines.
        var lines = 1
        var hasEnded = false
    }

    let kind: Kind
    private let folder: HistoryFolder
    private let path: String
    private let pending: Mutex<Pending>

    /// The number of collected bytes from which they are written.
    private static let bytesPerWrite = 64 << 10

    init(folder: HistoryFolder, path: String, name: String, kind: Kind) {
        self.kind = kind
        self.folder = folder
        self.path = path
        var line = JSONObjectWriter()
        line.member("e", "begin")
        line.member("ms", MonotonicClock.nowMs())
        line.member("history", 1)
        line.member("kind", kind.rawValue)
        line.member("wall", WallClock.nowMs())
        line.member("who", name)
        pending = Mutex(Pending(bytes: line.finishLine()))
    }

    /// Appends a line: the event, its time, and its members.
    func write(_ what: String, about sites: [Site] = [], _ members: (inout JSONObjectWriter) -> Void) {
        let now = MonotonicClock.nowMs()
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
            guard pending.bytes.count >= Self.bytesPerWrite else { return }
            append(&pending)
        }
    }

    /// Appends the last line, which contains the number of the lines before it.
    func writeEnd(_ members: (inout JSONObjectWriter) -> Void) {
        let now = MonotonicClock.nowMs()
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

    /// Returns the number of a site in this folder's files.
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

    /// Removes everything that was written.
    func discard() {
        pending.withLock { pending in
            pending.bytes.removeAll()
            _ = unlink(path)
        }
    }

    /// Appends the collected bytes. The file is open only during the write, because thousands of clients have a file
    /// each.
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
