import Glibc
import ReelBase
import ReelCore

/// Writes log lines for the operator: one line per event with time and level, as `key=value` pairs or as a JSON object.
public struct Logger: Sendable {
    /// The importance of a line.
    public enum Level: Int, Sendable, Comparable, CaseIterable {
        case debug, info, warning, error, audit

        /// Returns true if `a` is less important than `b`.
        public static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }
    }

    /// The format of a line.
    public enum Format: String, Sendable, CaseIterable {
        /// The format `key=value`.
        case text
        /// A JSON object with string values.
        case json
    }

    private let threshold: Level
    private let format: Format
    private let write: @Sendable (String) -> Void

    /// A logger that drops the less important lines.
    ///
    /// - Parameters:
    ///   - threshold: The lowest level whose lines are written.
    ///   - format: The format of the lines.
    ///   - write: Called with each line and its LF, on the thread that logs. By default it writes to standard error.
    public init(
        threshold: Level = .info,
        format: Format = .text,
        write: @escaping @Sendable (String) -> Void = Logger.writeToStandardError
    ) {
        self.threshold = threshold
        self.format = format
        self.write = write
    }

    /// Writes a line that only developers need.
    public func debug(_ event: String, _ fields: KeyValuePairs<String, String> = [:]) { line(.debug, event, fields) }
    /// Writes a line that informs the operator.
    public func info(_ event: String, _ fields: KeyValuePairs<String, String> = [:]) { line(.info, event, fields) }
    /// Writes a line about a matter that the operator should check.
    public func warning(_ event: String, _ fields: KeyValuePairs<String, String> = [:]) {
        line(.warning, event, fields)
    }
    /// Writes a line about a matter that the operator must attend to.
    public func error(_ event: String, _ fields: KeyValuePairs<String, String> = [:]) { line(.error, event, fields) }

    /// Writes an audit line, such as for a refused client. No threshold drops it.
    public func audit(_ event: String, _ fields: KeyValuePairs<String, String> = [:]) { line(.audit, event, fields) }

    private func line(_ level: Level, _ event: String, _ fields: KeyValuePairs<String, String>) {
        guard level >= threshold else { return }
        if format == .json { return write(Self.object(level, event, fields) + "\n") }
        var text = "time=\(Self.timestamp()) level=\(level) event=\(Self.quoted(event))"
        for (key, value) in fields {
            text += " \(key)=\(Self.quoted(value))"
        }
        write(text + "\n")
    }

    private static func object(_ level: Level, _ event: String, _ fields: KeyValuePairs<String, String>) -> String {
        var names: Set<String> = []
        var line: [UInt8] = []
        func add(_ name: String, _ value: String) {
            guard names.insert(name).inserted else { return }
            line.append(line.isEmpty ? "{" : ",")
            line.append(quoted: name)
            line.append(":")
            line.append(quoted: value)
        }
        add("time", timestamp())
        add("level", "\(level)")
        add("event", event)
        for (key, value) in fields { add(key, value) }
        return String(decoding: line, as: UTF8.self) + "}"
    }

    /// Writes one line to standard error. A line is one system call, so that lines of threads do not mix.
    public static func writeToStandardError(_ text: String) {
        var text = text
        text.withUTF8 { bytes in
            _ = Glibc.write(STDERR_FILENO, bytes.baseAddress, bytes.count)
        }
    }

    /// Returns the first bytes of untrusted data as plain ASCII. A byte that is not printable becomes `\xNN`.
    static func excerpt(_ bytes: Bytes) -> String {
        let most = 64
        var text = ""
        for byte in bytes.prefix(most) {
            if (0x20...0x7e).contains(byte), byte != UInt8(ascii: "\\") {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                text += "\\x" + String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
            }
        }
        return bytes.count > most ? text + "..." : text
    }

    static func quoted(_ value: String) -> String {
        let plain = value.utf8.allSatisfy {
            (0x21...0x7e).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "=")
        }
        guard !plain || value.isEmpty else { return value }
        var text = "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case _ where PrintableText.isControl(scalar): text += PrintableText.escape(of: scalar)
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text + "\""
    }

    private static func timestamp() -> String {
        let nowMs = WallClock.nowMs()
        var (seconds, parts) = (time_t(nowMs / 1_000), tm())
        gmtime_r(&seconds, &parts)
        func padded(_ number: Int, _ width: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        let date = [Int(parts.tm_year) + 1900, Int(parts.tm_mon) + 1, Int(parts.tm_mday)].map { padded($0, 2) }
        let time = [Int(parts.tm_hour), Int(parts.tm_min), Int(parts.tm_sec)].map { padded($0, 2) }
        let millis = padded(Int(nowMs % 1_000), 3)
        return date.joined(separator: "-") + "T" + time.joined(separator: ":") + ".\(millis)Z"
    }
}
