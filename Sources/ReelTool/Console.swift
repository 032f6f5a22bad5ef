import Glibc
import ReelCore
import Synchronization

/// The output of a command: standard output and standard error, or the memory of a test. From any thread.
///
/// Standard output is buffered. The buffer is written by `flush`, when it reaches 64 KiB, and after each line on a
/// terminal.
///
/// Most printed text comes from nodes and from other writers of a stream. Its control characters and bidi controls are
/// escaped on a terminal, see `PrintableText`, and in text for people also in a pipe. Lines of JSON go through a pipe
/// unchanged: canonical JSON escapes C0 controls, but it can contain DEL, C1 and bidi controls.
final class Console: Sendable {
    enum Channel: Sendable { case output, error }

    /// True if standard output is a terminal: a person reads it, so commands print tables and colours.
    let isTerminal: Bool
    /// True if standard error is a terminal: a person reads the notes.
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

    /// The console of this process.
    static let process = Console(
        isTerminal: isatty(STDOUT_FILENO) == 1,
        isErrorTerminal: isatty(STDERR_FILENO) == 1
    ) { channel, bytes throws(CommandError) in
        try writeAll(bytes, to: channel == .output ? STDOUT_FILENO : STDERR_FILENO)
    }

    /// Writes whole lines of JSON to standard output. On a terminal, control characters are escaped; the JSON value
    /// stays the same.
    func write(_ bytes: some Sequence<UInt8>) throws(CommandError) {
        try isTerminal ? gather(PrintableText.lines(String(decoding: Array(bytes), as: UTF8.self)).utf8) : gather(bytes)
    }

    /// Writes a control sequence for the terminal, such as one that clears it.
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

    /// Writes a line for people to standard output.
    func print(_ line: String = "") throws(CommandError) {
        try gather((PrintableText.line(line) + "\n").utf8)
    }

    /// Writes lines for people to standard output. Text from outside could add lines to a page, so it belongs in
    /// `print(_:)`.
    func print(page text: String) throws(CommandError) {
        try gather((PrintableText.lines(text) + "\n").utf8)
    }

    /// Writes the buffer to standard output.
    func flush() throws(CommandError) {
        let bytes = gathered.withLock { gathered in
            defer { gathered.removeAll(keepingCapacity: true) }
            return gathered
        }
        if !bytes.isEmpty { try sink(.output, bytes) }
    }

    /// Writes a line to standard error: progress, a warning or an error. A failed write is ignored.
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
