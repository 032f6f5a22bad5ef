import ReelCore

extension Diagnosis {
    /// What clients were refused since the nodes started, and what is near its limit.
    var limits: [Finding] {
        let living = report.living
        var findings: [Finding] = []
        for node in living {
            let used = node.metrics.value("reel_gateway_in_flight_bytes")
            let most = node.metrics.value("reel_gateway_in_flight_limit_bytes")
            guard most > 0, used > 0.8 * most else { continue }
            findings.append(
                Finding(
                    .warning,
                    "limits",
                    "\(node.name) holds \(whole(used)) of \(whole(most)) bytes on their way into the log; beyond that "
                        + "it takes no more",
                    do: "See why the log is slow, or raise --in-flight-bytes."
                )
            )
        }
        findings += living.compactMap(refusedConnections)
        // Every gateway reads all records: the one that runs longest has seen the most.
        let tallies = living.map { $0.metrics.values("reel_gateway_void_records_total", by: "reason") }
        let voids = tallies.max { a, b in Self.total(a) < Self.total(b) } ?? [:]
        if !voids.isEmpty {
            findings.append(
                Finding(
                    .warning,
                    "limits",
                    "records in the log that are no valid event: \(Self.list(voids))",
                    do:
                        "Somebody else writes to the log. Nobody is stopped by it; the gateways' journals name the "
                        + "seqs, `reel dump` shows them."
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
                    "\(counted(whole(lagged), "time")) a client read too slowly and was told to pull (lagged)",
                    do: "Nothing is lost. If it is often the same clients, their network or their work is too slow."
                )
            )
        }
        return findings
    }

    /// What the node sent away since it started, by the limits that it was at.
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
            "\(node.name) has refused \(counted(whole(Self.total(refused)), "connection")) since it started: it was at "
                + "its limit (\(limits))",
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
