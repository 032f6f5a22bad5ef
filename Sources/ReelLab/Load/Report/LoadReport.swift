public import ReelCore

/// How a load run went.
public struct LoadReport: Sendable {
    /// What was to be done.
    public let plan: LoadPlan
    /// What was counted.
    public let statistics: LoadStatistics
    /// Events that were handed over and never acked.
    public let unacked: Int
    /// Readers that have not received all that was acked.
    public let behind: Int
    /// What did not go as it should, a sentence each; none if everything is acked and has arrived.
    public let problems: [String]
    /// How long events were published.
    public let publishingSeconds: Double
    /// A stream whose folded state no node had at the end, where it was asked for as evidence.
    public var stateless: StreamName?
    /// The nodes that were asked at the end, one by one, for what they have folded; nil: none were.
    public var asked: AskedNodes?
    /// Gateways that let no client in, with the reason.
    public var closed: [String] = []

    /// Everything is acked and has arrived.
    public var isComplete: Bool { problems.isEmpty }

    /// What was expected, what was found, and whether that will do.
    public func judge(_ expectations: [LoadExpectation]) -> [(text: String, isReached: Bool, found: String)] {
        expectations.map { expectation in
            let (isReached, found) = expectation.judge(self)
            return (expectation.description, isReached, found)
        }
    }

    /// What the run leaves in the log, as a sentence.
    public var left: String {
        let names = plan.streams.prefix(1) + plan.streams.dropFirst().suffix(1)
        let list = names.map { "\($0)" }.joined(separator: plan.streams.count > 2 ? " to " : " and ")
        return "what was published stays in the log, in the stream\(names.count > 1 ? "s" : "") \(list)"
    }

    /// The report as text, some lines.
    public var text: String {
        let counted = statistics
        var lines = [
            "published  \(counted.due) due, \(counted.acked) acked, \(unacked) not; "
                + "\(counted.sent) sent, \(counted.resent) of them again, \(counted.nacked) nacked",
            "ack        " + Self.row(counted.ack),
            "delivery   " + Self.row(counted.delivery),
            "readers    \(counted.delivered) events delivered, \(counted.fetches) fetches, \(counted.lagged) lagged, "
                + "\(behind) behind",
            "pause      the longest of each publisher: " + Self.row(counted.pause),
            "lost       \(counted.reconnects) connections",
        ]
        if plan.coldStarts > 0 { lines.insert("cold start " + Self.row(counted.coldStart), at: 3) }
        if !counted.codes.isEmpty {
            let codes = counted.codes.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            lines.append("codes      " + codes.joined(separator: ", "))
        }
        if let asked {
            lines.append("asked      \(asked.answered) of \(asked.known) snapshot nodes said their states and heads")
        }
        if let stateless { lines.append("note       no node had the folded state of \(stateless), to be judged") }
        lines += closed.map { "note       nobody got in at \($0)" }
        lines += problems.map { "problem    \($0)" }
        return lines.joined(separator: "\n")
    }

    /// Quantiles in a row.
    static func row(_ histogram: LatencyHistogram) -> String {
        guard histogram.count > 0 else { return "none" }
        let parts: [(String, Double)] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)]
        return (parts.map { "\($0.0) \(ms(histogram.quantile($0.1)))" } + ["max \(ms(histogram.max))"])
            .joined(separator: ", ")
    }

    /// `12.3 ms`.
    static func ms(_ nanoseconds: UInt64) -> String {
        let tenths = (nanoseconds + 50_000) / 100_000
        return "\(tenths / 10).\(tenths % 10) ms"
    }
}
