import ReelBase

/// The output of a demo: lines, chapters with the time since the start, and a mark for each check.
public final class DemoScreen {
    private let write: (String) -> Void
    private let isTerminal: Bool
    private let start = MonotonicClock.nowMs()
    private(set) var failures = 0

    /// Creates an output that calls `write` for each line, with colours if `isTerminal`.
    public init(isTerminal: Bool, write: @escaping (String) -> Void) {
        self.isTerminal = isTerminal
        self.write = write
    }

    /// Seconds since the start, with one decimal.
    var elapsed: String { Self.seconds(MonotonicClock.nowMs() - start) }

    static func seconds(_ ms: Int64) -> String { "\(ms / 1_000).\(ms % 1_000 / 100) s" }

    func title(_ text: String) {
        write(styled(text, "1"))
    }

    func chapter(_ text: String) {
        write("")
        write(styled("[\(padded(elapsed, 6))]  \(text)", "1;36"))
    }

    func say(_ text: String) {
        write("          " + text)
    }

    /// Prints the result of a check, and counts a failure.
    func check(_ holds: Bool, _ text: String) {
        if !holds { failures += 1 }
        write((holds ? styled("   ok     ", "32") : styled("   WRONG  ", "1;31")) + text)
    }

    /// Prints a table. The first row is its head.
    func table(_ rows: [[String]]) {
        let columns = rows.first?.count ?? 0
        let widths = (0..<columns).map { column in rows.map { $0[column].count }.max() ?? 0 }
        for (index, row) in rows.enumerated() {
            let line = row.enumerated().map { column, cell in
                column == columns - 1 ? cell : cell + String(repeating: " ", count: widths[column] - cell.count)
            }.joined(separator: "  ")
            write("          " + (index == 0 ? styled(line, "4") : line))
        }
    }

    private func styled(_ text: String, _ code: String) -> String {
        isTerminal ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }

    private func padded(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
