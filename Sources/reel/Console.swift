import Glibc
import Synchronization

/// Where a command writes: standard output and standard error, or the memory of a test.
///
/// Standard output is gathered; it leaves by `flush`, when much has come together, and line by line on a terminal.
final class Console: Sendable {
    enum Channel: Sendable { case output, error }

    /// Standard output is a terminal: a person reads along, and colours and tables are welcome.
    let isTerminal: Bool
    /// Standard error is one: a person reads what is noted.
    let isErrorTerminal: Bool
    private let sink: @Sendable (Channel, [UInt8]) throws(Complaint) -> Void
    private let gathered = Mutex<[UInt8]>([])

    init(
        isTerminal: Bool,
        isErrorTerminal: Bool = false,
        sink: @escaping @Sendable (Channel, [UInt8]) throws(Complaint) -> Void
    ) {
        self.isTerminal = isTerminal
        self.isErrorTerminal = isErrorTerminal
        self.sink = sink
    }

    /// The process's own.
    static let process = Console(
        isTerminal: isatty(STDOUT_FILENO) == 1,
        isErrorTerminal: isatty(STDERR_FILENO) == 1
    ) { channel, bytes throws(Complaint) in
        try writeAll(bytes, to: channel == .output ? STDOUT_FILENO : STDERR_FILENO)
    }

    /// Bytes to standard output as they are.
    func write(_ bytes: some Sequence<UInt8>) throws(Complaint) {
        let isMuch = gathered.withLock {
            $0.append(contentsOf: bytes)
            return $0.count >= 65_536
        }
        if isMuch || isTerminal { try flush() }
    }

    /// A line to standard output.
    func print(_ line: String = "") throws(Complaint) {
        try write((line + "\n").utf8)
    }

    /// Hands on what was gathered for standard output.
    func flush() throws(Complaint) {
        let bytes = gathered.withLock { gathered in
            defer { gathered.removeAll(keepingCapacity: true) }
            return gathered
        }
        if !bytes.isEmpty { try sink(.output, bytes) }
    }

    /// A line to standard error: progress, warnings, and why it did not work. That it cannot be written is no error.
    func note(_ line: String) {
        try? sink(.error, Array((line + "\n").utf8))
    }
}

private func writeAll(_ bytes: [UInt8], to descriptor: Int32) throws(Complaint) {
    var done = 0
    while done < bytes.count {
        let written = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress! + done, bytes.count - done) }
        if written >= 0 {
            done += written
        } else if errno == EPIPE {
            throw .brokenPipe
        } else if errno != EINTR {
            throw Complaint(.failed, "standard output cannot be written: \(String(cString: strerror(errno)))")
        }
    }
}
