import ReelCore
import ReelNode

/// The findings that follow from a report of a cluster. Pure: equal reports have equal findings.
struct Diagnosis {
    let report: ClusterReport

    /// All findings, the worst first.
    var findings: [Finding] {
        let all = nodes + epochs + stops + log + lag + limits + crowds
        return Finding.Level.allCases.reversed().flatMap { level in all.filter { $0.level == level } }
    }

    /// Returns a phrase for all nodes that answer. `count`: their number.
    static func each(of count: Int) -> String {
        count == 1 ? "the node that answers" : "each of the \(count) nodes that answer"
    }

    // MARK: Nodes

    private var nodes: [Finding] {
        var findings: [Finding] = []
        if report.nodes.isEmpty, case .failure? = report.log {
            findings.append(
                Finding(
                    .problem,
                    "nodes",
                    "none is known: the log, which lists them, does not answer",
                    do: "Name a node with --url: it reports its own view of the log."
                )
            )
        } else if report.nodes.isEmpty {
            findings.append(
                Finding(
                    .problem,
                    "nodes",
                    report.left.isEmpty
                        ? "no node has announced itself in the log within the last ten minutes"
                        : "all nodes that have announced themselves in the log within the last ten minutes have left",
                    do: "Start a gateway and a snapshot node on it, or correct --log."
                )
            )
        }
        for node in report.left {
            findings.append(Finding(.note, "nodes", "\(node) is not asked: it left after a drain"))
        }
        for node in report.nodes where !node.answers {
            findings.append(
                Finding(
                    node.isNamed ? .problem : .warning,
                    "nodes",
                    "\(node.name) \(node.refusal == nil ? "does not answer" : "refuses requests"): \(node.failure)"
                        + (node.lastWord.map { "; \($0)" } ?? ""),
                    do: Self.advice(silent: node)
                )
            )
        }
        for address in report.oddAddresses {
            findings.append(
                Finding(
                    .warning,
                    "nodes",
                    "a node announces the address `\(address)`, which is not valid",
                    do: "Start it with --node-url http://HOST:PORT, an address at which other nodes reach it."
                )
            )
        }
        for node in report.nodes {
            guard let fault = node.announced?.fault else { continue }
            findings.append(
                Finding(
                    .warning,
                    "nodes",
                    "\(node.name): \(fault); its positions are not used",
                    do: "Check which programs can write announcements: to the log's file, or the topic reel.nodes."
                )
            )
        }
        for node in report.nodes where node.answers {
            guard let secrecy = node.secrecy else { continue }
            findings.append(
                Finding(
                    .problem,
                    "nodes",
                    "\(node.name) does not list the other nodes, so they are unknown: \(secrecy.message)",
                    do: secrecy.refusal == .notFound
                        ? "Name the node's operator's port (--admin-listen) with --url, or the log with --log."
                        : secrecy.refusal?.adviceToAsker
                            ?? "Check that a node of Reel runs there, and its build."
                )
            )
        }
        for node in report.nodes where node.answers {
            guard let refusal = node.metricsRefusal else { continue }
            findings.append(
                Finding(
                    .warning,
                    "nodes",
                    "\(node.name) does not show its metrics, so its limits are unknown: \(refusal.message)",
                    do: refusal.refusal == .notFound
                        ? "Name its operator's port (--admin-listen) with --url. A loopback port answers only on the"
                            + " node's own machine: run the doctor there."
                        : refusal.refusal?.adviceToAsker ?? "Check that its operator's port can be reached."
                )
            )
        }
        for node in report.nodes where node.answers && node.announced == nil && node.secrecy == nil {
            findings.append(
                Finding(
                    .note,
                    "nodes",
                    "\(node.address) answers, but no node announces this address: it is a proxy, a node that has just "
                        + "started, or a node with another --node-url"
                )
            )
        }
        for node in report.living {
            guard let standing = node.looks.last else { continue }
            if let clock = clock(of: node) { findings.append(clock) }
            // A stopped partition has its own finding.
            guard !standing.isReady, !standing.partitions.contains(where: { $0.stop.map(Self.isLasting) ?? false })
            else { continue }
            findings.append(
                Finding(
                    .warning,
                    "nodes",
                    "\(node.name) is not ready: \(standing.reason)",
                    do: standing.isLeaving
                        ? "Nothing: its clients go to other nodes." : "Wait; until then it gets no clients."
                )
            )
        }
        return findings + roles
    }

    /// Returns the advice for a node that does not answer.
    private static func advice(silent node: ClusterReport.Node) -> String {
        if node.isUnspecified {
            return "Other machines cannot use that address: start it with --node-url http://HOST:PORT."
        }
        if let refusal = node.refusal {
            return refusal == .overloaded
                ? "It has reached a limit (--connections-max, --memory-max-bytes): raise it, or add a node."
                : refusal.entry.advice
        }
        return node.announced == nil
            ? "Check that it runs there (`reel gateway --listen …`), and that the address is right."
            : "Start it again: a gateway is stateless, a snapshot node continues from its files. If it will not "
                + "return, it disappears ten minutes after its last announcement."
    }

    private var roles: [Finding] {
        let (gateways, snapshots) = (report.living.filter(\.isGateway), report.living.filter(\.isSnapshot))
        if report.living.isEmpty { return [] }
        var findings: [Finding] = []
        if gateways.isEmpty, !report.isPartial {
            findings.append(
                Finding(.problem, "nodes", "no gateway answers", do: "Start a gateway: `reel gateway --log …`.")
            )
        }
        if snapshots.isEmpty, !report.isPartial {
            findings.append(
                Finding(
                    .problem,
                    "nodes",
                    "no snapshot node answers: requests for snapshots, deltas and objects get node_behind",
                    do: "Start a snapshot node: `reel snapshot --log … --data DIR`."
                )
            )
        } else if snapshots.count == 1, gateways.count > 1, !report.isPartial {
            findings.append(
                Finding(
                    .note,
                    "nodes",
                    "one snapshot node serves \(gateways.count) gateways: if it fails, no node answers requests for "
                        + "the state",
                    do: report.nodes.contains { !$0.answers && $0.isSnapshot }
                        ? "Restart the one that does not answer."
                        : "Start a second snapshot node, with a separate data folder."
                )
            )
        }
        let builds = Dictionary(grouping: report.living) { $0.announced?.build ?? "unknown" }
        if builds.count > 1 {
            let list = builds.keys.sorted().map {
                "\($0): \(builds[$0, default: []].map(\.name).joined(separator: ", "))"
            }
            findings.append(
                Finding(
                    .warning,
                    "nodes",
                    "nodes of \(builds.count) builds run together: \(list.joined(separator: "; "))",
                    do: "Finish the upgrade, one node after the other."
                )
            )
        }
        if !gateways.isEmpty, !snapshots.isEmpty {
            let both = report.living.filter { $0.isGateway && $0.isSnapshot }.count
            let isOne = report.living.count == 1
            let count =
                both == report.living.count
                ? counted(both, "node") + " with both roles"
                : "\(counted(gateways.count, "gateway")) and \(counted(snapshots.count, "snapshot node"))"
            findings.append(
                Finding(
                    .ok,
                    "nodes",
                    "\(count) answer\(isOne ? "s" : ""), build \(builds.keys.sorted().joined(separator: ", "))"
                )
            )
        }
        return findings
    }

    /// The finding about a node whose clock differs from that of this machine; nil if it does not. Only the times of
    /// events and the validity of tokens depend on clocks.
    private func clock(of node: ClusterReport.Node) -> Finding? {
        guard let look = node.looks.last, let clockMs = look.clockMs, let askedMs = node.askedMs else { return nil }
        let difference = Double(clockMs) - Double(askedMs)
        guard abs(difference) > Self.clockToleranceMs else { return nil }
        let direction = difference < 0 ? "behind" : "ahead of"
        return Finding(
            .warning,
            "nodes",
            "the clock of \(node.name) is \(age(ms: Int64(clamping: Int(abs(difference))))) \(direction)"
                + " this machine's",
            do: "Correct the wrong clock (NTP). The times of events, and the validity of tokens, depend on the clock of"
                + " the gateway."
        )
    }

    /// The difference between two clocks that is ignored, in milliseconds.
    private static let clockToleranceMs = 30_000.0

    // MARK: Partitions that have stopped

    /// Returns true if the reason does not disappear without an operator: these codes also make a node unready.
    static func isLasting(_ stop: NodeStanding.Stop) -> Bool {
        ErrorCode(rawValue: stop.code).map { PartitionHealth.Stop($0, "").isLasting } ?? true
    }

    /// The findings about partitions that nodes do not process, by node and code.
    private var stops: [Finding] {
        report.living.flatMap { node -> [Finding] in
            let places = (node.looks.last?.partitions ?? []).enumerated().filter { $0.element.stop != nil }
            let groups = Dictionary(grouping: places) {
                "\($0.element.stop?.role ?? "") \($0.element.stop?.code ?? "")"
            }
            return groups.sorted { $0.key < $1.key }.compactMap { _, places in
                guard
                    let (number, stop) = places.lazy.compactMap({ place in
                        place.element.stop.map { (place.offset, $0) }
                    }).first
                else { return nil }
                let numbers = places.prefix(4).map { "\($0.offset)" }.joined(separator: ", ")
                let more = places.count > 4 ? " and \(places.count - 4) more" : ""
                let work = stop.role == "snapshot" ? "folds" : "reads"
                return Finding(
                    .problem,
                    "partitions",
                    "\(node.name) no longer \(work) \(places.count == 1 ? "partition" : "partitions") \(numbers)\(more)"
                        + " (\(stop.code)): \(places.count == 1 ? "" : "partition \(number): ")\(stop.reason)",
                    do: Self.advice(stop)
                )
            }
        }
    }

    private static func advice(_ stop: NodeStanding.Stop) -> String {
        switch stop.code {
        case "damaged":
            "Show the records that can be read: `reel dump --skip-damaged`. Then continue in a new epoch: `reel epoch"
                + " new --skip-damaged --from-snapshot DIR` if a snapshot node has folded beyond the damage, else `reel"
                + " epoch new --skip-damaged`. Both print the loss."
        case "ahead_of_log", "diverged":
            "Restore the log's files or brokers. If the records are lost, continue with the state that this node has"
                + " folded: `reel epoch new --from-snapshot DIR`, where DIR is its snapshot folder. Until then"
                + " publishes to the partition are refused."
        case "truncated":
            "Stop it and another snapshot node, replace its folder of the epoch by a copy of the other node's, and"
                + " start both, see docs/reference/snapshot.md. Without another node: `reel epoch new"
                + " --from-snapshot DIR`."
        case "log_unavailable":
            "Restart the brokers, or check the disk of the log's file. The node then resumes automatically."
        case "forbidden":
            "Give the node's user the right that the reason names. The node then resumes automatically."
        case "node_behind":
            "Free space on the disk of its data folder. The node then resumes automatically; until then it answers from"
                + " its old state."
        default:
            "If the reason names a newer version, start that. Otherwise see its log lines, and restart it: its files"
                + " can be rebuilt from the log."
        }
    }

    // MARK: Log

    /// The finding about nodes of several deployments; nil if there is only one. Their epochs differ too, but that is
    /// not a second finding.
    private var deployments: Finding? {
        var places: [String: [String]] = [:]
        for node in report.living {
            guard let deployment = node.looks.last?.deployment, !deployment.isEmpty else { continue }
            places[deployment, default: []].append(node.name)
        }
        guard places.count > 1 else { return nil }
        let list = places.keys.sorted().map { "\($0): \(places[$0, default: []].joined(separator: ", "))" }
        return Finding(
            .problem,
            "log",
            "nodes of \(places.count) deployments answer: \(list.joined(separator: "; "))",
            do: "A device uses only the deployment that it met first, and refuses others. Give each deployment "
                + "separate addresses, or correct --log of the nodes that read the wrong log."
        )
    }

    private var epochs: [Finding] {
        if let deployments { return [deployments] }
        var places: [String: [String]] = [:]
        for node in report.living { places[node.looks.last?.epoch ?? "", default: []].append(node.name) }
        if case .success(let log)? = report.log { places[log.epoch.description, default: []].append("the log") }
        guard places.count > 1 else { return [] }
        let list = places.keys.sorted().map { "\($0): \(places[$0, default: []].joined(separator: ", "))" }
        return [
            Finding(
                .problem,
                "log",
                "not all nodes are in the same epoch: \(list.joined(separator: "; "))",
                do:
                    "A node changes to the next epoch when it has read the end of its own. Restart a node that stays "
                    + "behind; if it reads another log, correct its --log."
            )
        ]
    }

    private var log: [Finding] {
        var findings = losses
        if case .failure(let complaint)? = report.log {
            findings.append(
                Finding(
                    .problem,
                    "log",
                    "the log cannot be reached from this machine: \(complaint.message)",
                    do: report.hasBrokers
                        ? "Start the brokers, or correct --log. Until then clients keep their events."
                        : "Correct --log. If the log was there, put its file back, or continue without it, see "
                            + "docs/operations/epochs.md."
                )
            )
        }
        for node in report.living {
            guard var look = node.looks.last else { continue }
            // A stop of the fold alone does not stop publishes, and has its own finding.
            if look.partitions.contains(where: { $0.stop != nil }) {
                look.log = look.roles.first { $0.name == "gateway" }?.log ?? "ok"
                let stops = look.partitions.compactMap(\.stop)
                if look.log == "unavailable", stops.contains(where: Self.isLasting) { look.log = "ok" }
            }
            if look.log != "ok" { findings.append(Self.finding(node, look)) }
        }
        var notices: [String: [String]] = [:]
        for node in report.living {
            // A changed file of the log has its own finding.
            guard let notice = node.looks.last?.notice, !notice.isEmpty,
                node.metrics.value("reel_log_file_changed") == 0
            else { continue }
            notices[notice, default: []].append(node.name)
        }
        for (notice, nodes) in notices.sorted(by: { $0.key < $1.key }) {
            findings.append(Finding(.problem, "log", "\(nodes.joined(separator: ", ")) found: \(notice)"))
        }
        for complaint in report.complaints where !notices.keys.contains(where: { $0.contains(complaint) }) {
            findings.append(Finding(.problem, "log", complaint))
        }
        guard findings.isEmpty, stops.isEmpty else { return findings }
        if let standing = report.living.first?.looks.last {
            let (nodes, count) = (Self.each(of: report.living.count), counted(standing.partitions.count, "partition"))
            findings.append(Finding(.ok, "log", "ok for \(nodes); epoch \(standing.epoch), \(count)"))
        } else if case .success(let log)? = report.log {
            findings.append(Finding(.ok, "log", "ok; epoch \(log.epoch), \(counted(log.bounds.count, "partition"))"))
        }
        return findings
    }

    /// The finding about a log that is not `ok` for a node.
    private static func finding(_ node: ClusterReport.Node, _ look: NodeStanding) -> Finding {
        let waited = node.metrics.value("reel_gateway_oldest_publish_seconds")
        let oldest = waited > 0 ? "; the oldest publish has waited for \((waited * 10).rounded() / 10) s" : ""
        let detail = look.detail.isEmpty || look.detail.hasPrefix("the oldest publish") ? "" : "; \(look.detail)"
        return switch look.log {
        case "degraded":
            Finding(
                .warning,
                "log",
                "slow for \(node.name), or its last write failed\(oldest)\(detail)",
                do: "Check the brokers, or the disk of the log's file. Accepted events are acknowledged later. After a"
                    + " failed write, the next successful write ends this state: publish an event, or wait."
            )
        case "unavailable":
            Finding(
                .problem,
                "log",
                "unavailable for \(node.name): new publishes are nacked\(oldest)\(detail)",
                do: "Restart the brokers, or free space on the disk of the log's file. Clients keep their events and "
                    + "send them again; reads continue."
            )
        case "ended":
            Finding(
                .warning,
                "log",
                "ended for \(node.name): this epoch has ended and another one follows",
                do: "The node changes to it automatically; restart the node if it does not."
            )
        case "truncated":
            Finding(
                .problem,
                "log",
                "trimmed while \(node.name) did not read it: the node has stopped",
                do: "Do what the line about its partitions says."
            )
        case "ahead_of_log":
            Finding(
                .problem,
                "log",
                "has lost records that \(look.detail.isEmpty ? node.name : "a node") has read before: publishes are"
                    + " refused\(look.detail.isEmpty ? "" : "; \(node.name) reports: \(look.detail)")",
                do: "Restore the log, or continue with the state that a snapshot node has folded:"
                    + " `reel epoch new --from-snapshot DIR`."
            )
        case "diverged":
            Finding(
                .problem,
                "log",
                "not the log that \(look.detail.isEmpty ? node.name : "a node") has read before: publishes are"
                    + " refused\(look.detail.isEmpty ? "" : "; \(node.name) reports: \(look.detail)")",
                do: "Restore the former log, or continue with the state that a snapshot node has folded:"
                    + " `reel epoch new --from-snapshot DIR`."
            )
        default:
            Finding(
                .problem,
                "log",
                "\(node.name) has stopped: \(look.log)",
                do: "See its log lines. Its files can be rebuilt from the log: stop it, move its data folder away, "
                    + "start it."
            )
        }
    }
}
