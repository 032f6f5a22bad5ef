/// The result of a chaos run, and its effect on the clients.
public struct ChaosReport: Sendable {
    /// A fault that occurred.
    public struct Row: Sendable {
        /// The fault as scheduled.
        public var fault: ChaosFault
        /// The time at which the fault began, in milliseconds from the start.
        public var fromMs: Int64
        /// The time at which the fault was undone and its target worked again, in milliseconds from the start.
        public var toMs: Int64
        /// The evidence that the fault took effect; nil: it did not.
        public var proof: String?
        /// The longest time that an event waited for its ack during the fault, in nanoseconds.
        public var longestAckNs: Int64 = 0
    }

    /// The faults, sorted by their beginning.
    public var rows: [Row]
    /// The counts of the clients.
    public var load: LoadReport

    /// The faults that did not take effect.
    public var withoutEffect: [Row] { rows.filter { $0.proof == nil } }

    /// A table with a row for each kind of fault: its count, and the longest wait for an ack.
    public var text: String {
        var lines = ["fault                   on         times   longest wait for an ack"]
        for kind in ChaosFault.Kind.allCases {
            let done = rows.filter { $0.fault.kind == kind && $0.proof != nil }
            let groups = Dictionary(grouping: done, by: \.fault.target.group)
            for (group, rows) in groups.sorted(by: { $0.key < $1.key }) {
                let waitNs = rows.map(\.longestAckNs).max() ?? 0
                let cells = [Self.padded(kind.title, 22), Self.padded(group, 9), Self.padded("\(rows.count)", 6)]
                lines.append((cells + ["\(waitNs / 1_000_000) ms"]).joined(separator: "  "))
            }
        }
        return lines.joined(separator: "\n")
    }

    static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
