/// A goal of a run, in the form of the command line: `p99<25ms`, `delivery.p99.9<=1s`, `pause.p99<2s`, `acked/s>=950`.
public struct LoadExpectation: Sendable, Equatable, CustomStringConvertible {
    private enum Comparison: String, CaseIterable {
        case atMost = "<="
        case atLeast = ">="
        case below = "<"
        case above = ">"
    }

    private enum Latency: String { case ack, delivery, cold, pause }

    private enum Metric: Equatable {
        /// A quantile, or `max` (1), in nanoseconds.
        case latency(Latency, quantile: Double)
        case count(String)
    }

    /// The text from the command line.
    public let description: String
    private let metric: Metric
    private let comparison: Comparison
    private let bound: Double

    /// The counts that can be expected; those with `/s` are means over the time of publishing.
    private static let counts: [String: @Sendable (LoadReport) -> Double] = [
        "acked": { Double($0.statistics.acked) },
        "acked/s": { Double($0.statistics.acked) / max(0.001, $0.publishingSeconds) },
        "delivered": { Double($0.statistics.delivered) },
        "delivered/s": { Double($0.statistics.delivered) / max(0.001, $0.publishingSeconds) },
        "unacked": { Double($0.unacked) },
        "behind": { Double($0.behind) },
        "lagged": { Double($0.statistics.lagged) },
        "lost": { Double($0.statistics.reconnects) },
        "resent": { Double($0.statistics.resent) },
    ]

    /// Reads an expectation. Throws the expected form if the text is not valid.
    public init(_ text: String) throws(LoadFailure) {
        description = text
        guard let comparison = Comparison.allCases.first(where: { text.contains($0.rawValue) }),
            let place = text.firstRange(of: comparison.rawValue)
        else { throw Self.failure(text, "no <, <=, > or >=") }
        self.comparison = comparison
        let name = String(text[..<place.lowerBound].filter { $0 != " " })
        let value = String(text[place.upperBound...].filter { $0 != " " })
        guard let metric = Self.metric(name) else { throw Self.failure(text, "`\(name)` is nothing that is measured") }
        self.metric = metric
        let isTime = if case .count = metric { false } else { true }
        guard let bound = isTime ? Self.nanoseconds(value) : Double(value), bound.isFinite, bound >= 0 else {
            throw Self.failure(text, "`\(value)` is no \(isTime ? "time: a number with us, ms or s" : "number")")
        }
        self.bound = bound
    }

    private static func failure(_ text: String, _ reason: String) -> LoadFailure {
        LoadFailure(
            .plan,
            "the expectation `\(text)` cannot be read: \(reason); "
                + "expected is such as p99<25ms, delivery.max<1s or acked/s>=950"
        )
    }

    private static func metric(_ name: String) -> Metric? {
        if name == "pause" { return .latency(.pause, quantile: 1) }
        if counts[name] != nil { return .count(name) }
        let words = name.split(separator: ".", maxSplits: 1)
        guard words.count == 2, let kind = Latency(rawValue: String(words[0])) else {
            return quantile(name[...]).map { .latency(.ack, quantile: $0) }
        }
        return quantile(words[1]).map { .latency(kind, quantile: $0) }
    }

    private static func quantile(_ name: Substring) -> Double? {
        if name == "max" { return 1 }
        guard name.hasPrefix("p"), let percent = Double(name.dropFirst()), percent > 0, percent < 100 else {
            return nil
        }
        return percent / 100
    }

    private static func nanoseconds(_ text: String) -> Double? {
        let units = [("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("ns", 1), ("s", 1e9)]
        for (unit, factor) in units where text.hasSuffix(unit) {
            return Double(text.dropLast(unit.count)).map { $0 * factor }
        }
        return nil
    }

    /// Returns the measured value, and if it meets the expectation. Without measurements no latency is reached.
    func judge(_ report: LoadReport) -> (isReached: Bool, found: String) {
        let value: Double
        let found: String
        switch metric {
        case .latency(let kind, let quantile):
            let histogram =
                switch kind {
                case .ack: report.statistics.ack
                case .delivery: report.statistics.delivery
                case .cold: report.statistics.coldStart
                case .pause: report.statistics.pause
                }
            guard histogram.count > 0 else { return (false, "nothing was measured") }
            value = Double(histogram.quantile(quantile))
            found = LoadReport.ms(histogram.quantile(quantile))
        case .count(let name):
            value = Self.counts[name]?(report) ?? 0
            found = value == value.rounded() ? "\(Int(value))" : "\((value * 10).rounded() / 10)"
        }
        switch comparison {
        case .atMost: return (value <= bound, found)
        case .atLeast: return (value >= bound, found)
        case .below: return (value < bound, found)
        case .above: return (value > bound, found)
        }
    }
}
