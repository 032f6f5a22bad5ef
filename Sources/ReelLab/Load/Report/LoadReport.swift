public import ReelCore

/// The result of a load run.
public struct LoadReport: Sendable {
    /// The plan of the run.
    public let plan: LoadPlan
    /// The counts of the run.
    public let statistics: LoadStatistics
    /// The number of events that were never acked.
    public let unacked: Int
    /// The number of readers that have not received all acked events.
    public let behind: Int
    /// The problems of the run, a sentence each; none if everything is acked and has arrived.
    public let problems: [String]
    /// The duration of publishing in seconds.
    public let publishingSeconds: Double
    /// A stream whose folded state no node had at the end, if states were collected as evidence; nil: there is none.
    public var stateless: StreamName?
    /// The nodes that were asked one by one at the end for their folded states; nil: none were.
    public var asked: AskedNodes?
    /// The gateways that accepted no client, with the reason.
    public var closed: [String] = []

    /// True if everything is acked and has arrived.
    public var isComplete: Bool { problems.isEmpty }

    /// Returns the measured value of each expectation, and if it is reached.
    public func judge(_ expectations: [LoadExpectation]) -> [(text: String, isReached: Bool, found: String)] {
        expectations.map { expectation in
            let (isReached, found) = expectation.judge(self)
            return (expectation.description, isReached, found)
        }
    }

    /// A sentence about the data that the run leaves in the log.
    public var left: String {
        let names = plan.streams.prefix(1) + plan.streams.dropFirst().suffix(1)
        let list = names.map { "\($0)" }.joined(separator: plan.streams.count > 2 ? " to " : " and ")
        return "what was published stays in the log, in the stream\(names.count > 1 ? "s" : "") \(list)"
    }

    /// The report as text of several lines.
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
            lines.append("asked      \(asked.answered) of \(asked.known) snapshot nodes named their states and heads")
        }
        if let stateless { lines.append("note       no node had the folded state of \(stateless) for the checker") }
        lines += closed.map { "note       nobody got in at \($0)" }
        lines += problems.map { "problem    \($0)" }
        return lines.joined(separator: "\n")
    }

    /// Returns the quantiles in a row.
    static func row(_ histogram: LatencyHistogram) -> String {
        guard histogram.count > 0 else { return "none" }
        let parts: [(String, Double)] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)]
        return (parts.map { "\($0.0) \(ms(histogram.quantile($0.1)))" } + ["max \(ms(histogram.max))"])
            .joined(separator: ", ")
    }

    /// Returns a time as `12.3 ms`.
    static func ms(_ nanoseconds: UInt64) -> String {
        let tenths = (nanoseconds + 50_000) / 100_000
        return "\(tenths / 10).\(tenths % 10) ms"
    }
}
