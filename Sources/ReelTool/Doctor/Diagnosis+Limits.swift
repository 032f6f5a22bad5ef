import ReelCore

extension Diagnosis {
    /// The findings about limits: refused requests since the nodes started, and values that are close to a limit.
    var limits: [Finding] {
        let living = report.living
        var findings: [Finding] = []
        for node in living {
            let used = node.metrics.value("reel_gateway_in_flight_bytes")
            let limit = node.metrics.value("reel_gateway_in_flight_limit_bytes")
            guard limit > 0, used > Self.nearLimit * limit else { continue }
            findings.append(
                Finding(
                    .warning,
                    "limits",
                    "\(node.name) has \(whole(used)) of \(whole(limit)) bytes in flight to the log; at the limit it "
                        + "refuses publishes",
                    do: "Find out why the log is slow, or raise --in-flight-bytes."
                )
            )
        }
        findings += living.compactMap(refusedConnections)
        // Every gateway reads all records, so the largest count is that of the longest-running gateway.
        let tallies = living.map { $0.metrics.values("reel_gateway_void_records_total", by: "reason") }
        let voids = tallies.max { a, b in Self.total(a) < Self.total(b) } ?? [:]
        if !voids.isEmpty {
            findings.append(
                Finding(
                    .warning,
                    "limits",
                    "records in the log that are not valid events: \(Self.list(voids))",
                    do:
                        "Another program writes to the log. All nodes ignore these records; the log lines of the "
                        + "gateways name their seqs, `reel dump` shows them."
                )
            )
        }
        for (name, what) in [("reel_gateway_nacks_total", "nacked"), ("reel_gateway_errors_total", "refused")] {
            for (word, count) in Self.sum(living.map { $0.metrics.values(name, by: "code") }).sorted(by: {
                $0.key < $1.key
            }) {
                guard let code = ErrorCode(rawValue: word) else { continue }
                findings.append(
                    Finding(
                        code.entry.retry == .later ? .warning : .note,
                        "limits",
                        "\(what) since the gateways started, \(counted(whole(count), "time")): \(word) (\(code.title))",
                        do: code.entry.advice
                    )
                )
            }
        }
        let lagged = living.reduce(0) { $0 + $1.metrics.value("reel_gateway_lagged_total") }
        if lagged > 0 {
            findings.append(
                Finding(
                    .note,
                    "limits",
                    "\(counted(whole(lagged), "time")) a client read too slowly and had to catch up (lagged)",
                    do: "Nothing is lost. If the same clients lag often, their network or their processing is too slow."
                )
            )
        }
        return findings
    }

    /// The part of a limit above which a value is close to it.
    private static let nearLimit = 0.8

    /// The finding about connections that the node has refused since it started, by the limits that it had reached.
    private func refusedConnections(_ node: ClusterReport.Node) -> Finding? {
        let refused = node.metrics.values("reel_node_refused_connections_total", by: "limit")
        guard !refused.isEmpty else { return nil }
        let settings = [
            "connections": "--connections-max", "address": "--connections-per-address", "memory": "--memory-max-bytes",
        ]
        let limits = refused.keys.sorted().map { settings[$0] ?? $0 }.joined(separator: ", ")
        return Finding(
            .warning,
            "limits",
            "\(node.name) has refused \(counted(whole(Self.total(refused)), "connection")) since it started: it had "
                + "reached its limit (\(limits))",
            do: "Clients try the other nodes. If it happens often, raise that limit, or start another node."
        )
    }

    private static func sum(_ all: [[String: Double]]) -> [String: Double] {
        all.reduce(into: [:]) { $0.merge($1, uniquingKeysWith: +) }
    }

    private static func total(_ counts: [String: Double]) -> Double { counts.values.reduce(0, +) }

    private static func list(_ counts: [String: Double]) -> String {
        counts.sorted { $0.key < $1.key }.map { "\(whole($0.value)) \($0.key)" }.joined(separator: ", ")
    }
}
