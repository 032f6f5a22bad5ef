/// What a chaos run did, and what clients felt of it.
public struct ChaosReport: Sendable {
    /// A fault that was done.
    public struct Row: Sendable {
        /// What was to be done.
        public var fault: ChaosFault
        /// When it was done, in milliseconds from the start.
        public var fromMs: Int64
        /// When it was undone, in milliseconds from the start.
        public var toMs: Int64
        /// How it showed that it took effect; nil: it did not.
        public var proof: String?
        /// The longest that an event waited for its ack meanwhile, in nanoseconds.
        public var longestAckNs: Int64 = 0
    }

    /// The faults, by their beginning.
    public var rows: [Row]
    /// What the clients counted.
    public var load: LoadReport

    /// Faults that did not come about.
    public var withoutEffect: [Row] { rows.filter { $0.proof == nil } }

    /// A row for each kind of fault: how often, and what it cost.
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
