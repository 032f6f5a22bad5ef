/// The progress of a run.
public struct LoadProgress: Sendable {
    /// The phase: connecting, publishing, settling, asking, over.
    public let phase: String
    /// The plan of the run.
    public let plan: LoadPlan
    /// The present counts.
    public let statistics: LoadStatistics
    /// The number of connections with a `welcome`.
    public let connected: Int
    /// The gateways that were tried and have accepted no client, with the reason, while another gateway has accepted
    /// one.
    public let closed: [String]

    /// The progress as text, line by line.
    public var lines: [String] {
        let last = statistics.seconds.last ?? LoadStatistics.Second()
        let elapsed = statistics.seconds.count
        var lines = [
            "\(phase), \(elapsed) s" + (plan.seconds.map { " of \(Int($0))  \(bar(Double(elapsed) / $0))" } ?? ""),
            "connections  \(connected) of \(plan.publishers + plan.readers + plan.editors), "
                + "\(statistics.reconnects) lost",
            "events       \(statistics.due) due, \(statistics.acked) acked, \(statistics.due - statistics.acked) open",
            "per second   \(last.acked) acked, \(last.delivered) delivered",
            "ack          " + LoadReport.row(last.ack),
            "delivery     " + LoadReport.row(last.delivery),
            "pause        longest \(LoadReport.ms(UInt64(max(0, statistics.longestPauseNs))))",
        ]
        lines += closed.map { "note         nobody gets in at \($0)" }
        if plan.coldStarts > 0 { lines.append("cold start   " + LoadReport.row(statistics.coldStart)) }
        return lines
    }

    private func bar(_ part: Double) -> String {
        let filled = Int((min(1, max(0, part)) * 40).rounded())
        return String(repeating: "█", count: filled) + String(repeating: "░", count: 40 - filled)
    }
}
