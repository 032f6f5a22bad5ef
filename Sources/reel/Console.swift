import Glibc
import ReelCore
import Synchronization

/// Where a command writes: standard output and standard error, or the memory of a test.
///
/// Standard output is gathered; it leaves by `flush`, when much has come together, and line by line on a terminal.
///
/// Most of what is printed comes from nodes and from other writers of a stream. A control character or a bidi control
/// in it never reaches a terminal, see `PrintableText`, and never text for people, also in a pipe. A program gets the
/// lines of JSON through a pipe as they are: canonical JSON escapes C0 itself, and holds DEL, C1 and bidi controls.
final class Console: Sendable {
    enum Channel: Sendable { case output, error }

    /// Standard output is a terminal: a person reads along, and colours and tables are welcome.
    let isTerminal: Bool
    /// Standard error is one: a person reads what is noted.
    let isErrorTerminal: Bool
    private let sink: @Sendable (Channel, [UInt8]) throws(CommandError) -> Void
    private let gathered = Mutex<[UInt8]>([])

    init(
        isTerminal: Bool,
        isErrorTerminal: Bool = false,
        sink: @escaping @Sendable (Channel, [UInt8]) throws(CommandError) -> Void
    ) {
        self.isTerminal = isTerminal
        self.isErrorTerminal = isErrorTerminal
        self.sink = sink
    }

    /// The process's own.
    static let process = Console(
        isTerminal: isatty(STDOUT_FILENO) == 1,
        isErrorTerminal: isatty(STDERR_FILENO) == 1
    ) { channel, bytes throws(CommandError) in
        try writeAll(bytes, to: channel == .output ? STDOUT_FILENO : STDERR_FILENO)
    }

    /// Whole lines of JSON to standard output. On a terminal controls are escaped; the JSON stays the same.
    func write(_ bytes: some Sequence<UInt8>) throws(CommandError) {
        try isTerminal ? gather(PrintableText.lines(String(decoding: Array(bytes), as: UTF8.self)).utf8) : gather(bytes)
    }

    /// A command to the terminal, such as to clear it.
    func command(_ sequence: String) throws(CommandError) {
        try gather(sequence.utf8)
    }

    private func gather(_ bytes: some Sequence<UInt8>) throws(CommandError) {
        let isMuch = gathered.withLock {
            $0.append(contentsOf: bytes)
            return $0.count >= 65_536
        }
        if isMuch || isTerminal { try flush() }
    }

    /// A line to standard output, for people.
    func print(_ line: String = "") throws(CommandError) {
        try gather((PrintableText.line(line) + "\n").utf8)
    }

    /// Lines to standard output, for people. A text from outside in them can add lines: it belongs into `print(_:)`.
    func print(page text: String) throws(CommandError) {
        try gather((PrintableText.lines(text) + "\n").utf8)
    }

    /// Hands on what was gathered for standard output.
    func flush() throws(CommandError) {
        let bytes = gathered.withLock { gathered in
            defer { gathered.removeAll(keepingCapacity: true) }
            return gathered
        }
        if !bytes.isEmpty { try sink(.output, bytes) }
    }

    /// A line to standard error: progress, warnings, and why it did not work. That it cannot be written is no error.
    func note(_ line: String) {
        try? sink(.error, Array((PrintableText.line(line) + "\n").utf8))
    }
}

private func writeAll(_ bytes: [UInt8], to descriptor: Int32) throws(CommandError) {
    var done = 0
    while done < bytes.count {
        let written = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress! + done, bytes.count - done) }
        if written >= 0 {
            done += written
        } else if errno == EPIPE {
            throw .brokenPipe
        } else if errno != EINTR {
            throw CommandError(.failed, "standard output cannot be written: \(String(cString: strerror(errno)))")
        }
    }
}
