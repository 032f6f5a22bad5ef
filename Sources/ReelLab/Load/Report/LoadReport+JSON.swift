import ReelCore

extension LoadReport {
    /// The report as one JSON object, for a program to read. Times are in nanoseconds.
    public var json: String {
        var bytes: [UInt8] = []
        bytes.append(#"{"complete":"#)
        bytes.append(isComplete ? "true" : "false")
        for (name, value) in [
            ("due", statistics.due), ("acked", statistics.acked), ("unacked", unacked), ("sent", statistics.sent),
            ("resent", statistics.resent), ("nacked", statistics.nacked), ("delivered", statistics.delivered),
            ("behind", behind), ("fetches", statistics.fetches), ("lagged", statistics.lagged),
            ("lost", statistics.reconnects), ("cold_failed", statistics.coldFailed),
            ("longest_pause_ns", Int(statistics.longestPauseNs)),
        ] {
            Self.append(name, to: &bytes)
            bytes.append(integer: value)
        }
        Self.append("publishing_s", to: &bytes)
        bytes.append(number: publishingSeconds)
        for (name, histogram) in [
            ("ack_ns", statistics.ack), ("delivery_ns", statistics.delivery), ("cold_start_ns", statistics.coldStart),
        ] {
            Self.append(name, to: &bytes)
            Self.append(histogram, to: &bytes)
        }
        Self.append("codes", to: &bytes)
        bytes.append("{")
        for (index, code) in statistics.codes.sorted(by: { $0.key < $1.key }).enumerated() {
            if index > 0 { bytes.append(",") }
            bytes.append(quoted: code.key)
            bytes.append(":")
            bytes.append(integer: code.value)
        }
        bytes.append("}")
        Self.append("problems", to: &bytes)
        bytes.append("[")
        for (index, problem) in problems.enumerated() {
            if index > 0 { bytes.append(",") }
            bytes.append(quoted: problem)
        }
        bytes.append("]")
        Self.append("seconds", to: &bytes)
        bytes.append("[")
        for (index, second) in statistics.seconds.enumerated() {
            if index > 0 { bytes.append(",") }
            bytes.append(#"{"acked":"#)
            bytes.append(integer: second.acked)
            bytes.append(#","delivered":"#)
            bytes.append(integer: second.delivered)
            bytes.append(#","connected":"#)
            bytes.append(integer: second.connected)
            bytes.append(#","ack_p99_ns":"#)
            bytes.append(integer: second.ack.quantile(0.99))
            bytes.append(#","delivery_p99_ns":"#)
            bytes.append(integer: second.delivery.quantile(0.99))
            bytes.append("}")
        }
        bytes.append("]}")
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func append(_ name: String, to bytes: inout [UInt8]) {
        bytes.append(",")
        bytes.append(quoted: name)
        bytes.append(":")
    }

    private static func append(_ histogram: LatencyHistogram, to bytes: inout [UInt8]) {
        bytes.append(#"{"count":"#)
        bytes.append(integer: histogram.count)
        for (name, part) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)] {
            append(name, to: &bytes)
            bytes.append(integer: histogram.quantile(part))
        }
        bytes.append(#","max":"#)
        bytes.append(integer: histogram.max)
        bytes.append("}")
    }
}
