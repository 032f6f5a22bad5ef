import ReelCore
import ReelNode

/// What a report of a cluster means. Pure: the same report, the same findings.
struct Diagnosis {
    let report: ClusterReport

    /// What there is to say, the worst first.
    var findings: [Finding] {
        let all = nodes + epochs + stops + log + lag + limits + crowds
        return Finding.Level.allCases.reversed().flatMap { level in all.filter { $0.level == level } }
    }

    /// All that are known to answer, by their number.
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
                    "none is known: the log, which would name them, does not answer",
                    do: "Name one with --url: it says how the log does for it."
                )
            )
        } else if report.nodes.isEmpty {
            findings.append(
                Finding(
                    .problem,
                    "nodes",
                    report.left.isEmpty
                        ? "nobody has announced itself in the log within the last ten minutes"
                        : "all that have announced themselves in the log within the last ten minutes have left",
                    do: "Start a gateway and a snapshot node on it, or correct --log."
                )
            )
        }
        for node in report.left {
            findings.append(Finding(.note, "nodes", "\(node) is not asked: it left in good order"))
        }
        for node in report.nodes where !node.answers {
            findings.append(
                Finding(
                    node.isNamed ? .problem : .warning,
                    "nodes",
                    "\(node.name) \(node.refusal == nil ? "does not answer" : "takes nobody"): \(node.failure)"
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
                    "a node announces the address `\(address)`, which cannot be asked",
                    do: "Start it with --node-url http://HOST:PORT, as other nodes reach it."
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
                    do: "See who can write announcements: the log's file, or the topic reel.nodes."
                )
            )
        }
        for node in report.nodes where node.answers {
            guard let secrecy = node.secrecy else { continue }
            findings.append(
                Finding(
                    .problem,
                    "nodes",
                    "\(node.name) does not say who the others are, so nothing is known of them: \(secrecy.message)",
                    do: secrecy.refusal == .notFound
                        ? "Name the node's operator's port (--admin-listen) with --url, or the log with --log."
                        : secrecy.refusal?.adviceToAsker
                            ?? "See whether a node of Reel runs there, and of which build."
                )
            )
        }
        for node in report.nodes where node.answers {
            guard let refusal = node.metricsRefusal else { continue }
            findings.append(
                Finding(
                    .warning,
                    "nodes",
                    "\(node.name) does not show its metrics, so nothing is known of its limits: \(refusal.message)",
                    do: refusal.refusal == .notFound
                        ? "Name its operator's port (--admin-listen) with --url. A port on the loopback answers only on"
                            + " the node's own machine: ask there."
                        : refusal.refusal?.adviceToAsker ?? "See whether its operator's port can be reached."
                )
            )
        }
        for node in report.nodes where node.answers && node.announced == nil && node.secrecy == nil {
            findings.append(
                Finding(
                    .note,
                    "nodes",
                    "\(node.address) answers, and no node announces this address: a proxy in front, a node that has "
                        + "just started, or one with another --node-url"
                )
            )
        }
        for node in report.living {
            guard let standing = node.looks.last else { continue }
            if let clock = clock(of: node) { findings.append(clock) }
            // A partition that has stopped is said under its own heading.
            guard !standing.isReady, !standing.partitions.contains(where: { $0.stop.map(Self.isLasting) ?? false })
            else { continue }
            findings.append(
                Finding(
                    .warning,
                    "nodes",
                    "\(node.name) is not ready: \(standing.reason)",
                    do: standing.isLeaving
                        ? "Nothing: its clients go to the others." : "Wait; it takes no clients until then."
                )
            )
        }
        return findings + roles
    }

    /// What to do about a node that does not answer.
    private static func advice(silent node: ClusterReport.Node) -> String {
        if node.isUnspecified {
            return "That is no address to go to: start it with --node-url http://HOST:PORT, as others reach it."
        }
        if let refusal = node.refusal {
            return refusal == .overloaded
                ? "It is at a limit of its own (--connections-max, --memory-max-bytes): raise it, or add a node."
                : refusal.entry.advice
        }
        return node.announced == nil
            ? "See whether it runs there (`reel gateway --listen …`), and whether the address is right."
            : "Start it again: a gateway holds nothing, a snapshot node goes on from its files. If it went for good, "
                + "it is forgotten ten minutes after its last word."
    }

    private var roles: [Finding] {
        let (gateways, snapshots) = (report.living.filter(\.isGateway), report.living.filter(\.isSnapshot))
        if report.living.isEmpty { return [] }
        var findings: [Finding] = []
        if gateways.isEmpty, !report.isPartial {
            findings.append(Finding(.problem, "nodes", "no gateway answers", do: "Start one: `reel gateway --log …`."))
        }
        if snapshots.isEmpty, !report.isPartial {
            findings.append(
                Finding(
                    .problem,
                    "nodes",
                    "no snapshot node answers: snapshots, deltas and objects are answered with node_behind",
                    do: "Start one: `reel snapshot --log … --data DIR`."
                )
            )
        } else if snapshots.count == 1, gateways.count > 1, !report.isPartial {
            findings.append(
                Finding(
                    .note,
                    "nodes",
                    "one snapshot node stands behind \(gateways.count) gateways: while it is away, nobody answers for "
                        + "the state",
                    do: report.nodes.contains { !$0.answers && $0.isSnapshot }
                        ? "Bring back the one that does not answer."
                        : "Start a second one, with a data folder of its own."
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

    /// A node whose clock differs from this machine's. Nothing of Reel depends on it but the times of events and when a
    /// token is valid.
    private func clock(of node: ClusterReport.Node) -> Finding? {
        guard let look = node.looks.last, let clockMs = look.clockMs, let askedMs = node.askedMs else { return nil }
        let off = Double(clockMs) - Double(askedMs)
        guard abs(off) > Self.clockMs else { return nil }
        return Finding(
            .warning,
            "nodes",
            "the clock of \(node.name) is \(age(ms: Int64(clamping: Int(abs(off))))) \(off < 0 ? "behind" : "ahead of")"
                + " this machine's",
            do: "Correct the clock that is wrong (NTP). Times of events are of the gateway that takes them, and tokens"
                + " become valid and expire by it."
        )
    }

    /// Clocks that differ by less are as good as the same.
    private static let clockMs = 30_000.0

    // MARK: Partitions that have stopped

    /// A reason that does not pass by itself: the same codes for which a node is not ready.
    static func isLasting(_ stop: NodeStanding.Stop) -> Bool {
        ErrorCode(rawValue: stop.code).map { PartitionHealth.Stop($0, "").isLasting } ?? true
    }

    /// What nodes do not process, by node and code.
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
            "See what is left: `reel dump --skip-damaged`. Then continue in a new epoch: `reel epoch new --skip-damaged"
                + " --from-snapshot DIR` where a snapshot node has folded beyond the damage, else `reel epoch new"
                + " --skip-damaged`. Both print the loss."
        case "ahead_of_log", "diverged":
            "Bring back the log's files or brokers as they were. If what is lost is lost, go on with what this node has"
                + " folded: `reel epoch new --from-snapshot DIR`, DIR is its snapshot folder. Until then nothing is"
                + " published to the partition."
        case "truncated":
            "Stop it, put a copy of its epoch's folder of another snapshot node, also stopped, in place of its own, and"
                + " start it. docs/reference/snapshot.md says how. Without one: `reel epoch new --from-snapshot DIR`."
        case "log_unavailable":
            "Bring the brokers back, or see to the disk of the log's file. It resumes by itself."
        case "forbidden":
            "Give the node's user the right that the reason names. It resumes by itself."
        case "node_behind":
            "Make room on the disk of its data folder. It resumes by itself, and answers from what it has until then."
        default:
            "If the reason names a newer version, start that. Else see its journal, and restart it: its files can be"
                + " made anew from the log."
        }
    }

    // MARK: Log

    /// Nodes of several deployments, if there are any: their epochs differ too, and that is not said again.
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
            do: "A device keeps to the deployment that it met first, and refuses the others. Give each deployment "
                + "addresses of its own, or correct the --log of the nodes that read the wrong one."
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
                "not all are in the same epoch: \(list.joined(separator: "; "))",
                do:
                    "A node goes on in the next epoch once it has read the end of its own. Restart one that stays "
                    + "behind; if its log is not the others', correct its --log."
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
                    "from here the log cannot be reached: \(complaint.message)",
                    do: report.hasBrokers
                        ? "Start the brokers, or correct --log. What clients publish is kept by them until then."
                        : "Correct --log. If that is where the log was, put its file back, or go on without it as "
                            + "docs/operations/epochs.md says."
                )
            )
        }
        for node in report.living {
            guard var look = node.looks.last else { continue }
            // What only the fold meets stops no publishes, and has a line of its own.
            if look.partitions.contains(where: { $0.stop != nil }) {
                look.log = look.roles.first { $0.name == "gateway" }?.log ?? "ok"
                let stops = look.partitions.compactMap(\.stop)
                if look.log == "unavailable", stops.contains(where: Self.isLasting) { look.log = "ok" }
            }
            if look.log != "ok" { findings.append(Self.finding(node, look)) }
        }
        var notices: [String: [String]] = [:]
        for node in report.living {
            // That the log's file is a copy has a line of its own.
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
            let (whom, count) = (Self.each(of: report.living.count), counted(standing.partitions.count, "partition"))
            findings.append(Finding(.ok, "log", "ok for \(whom); epoch \(standing.epoch), \(count)"))
        } else if case .success(let log)? = report.log {
            findings.append(Finding(.ok, "log", "ok; epoch \(log.epoch), \(counted(log.bounds.count, "partition"))"))
        }
        return findings
    }

    /// The log is not ok for this node.
    private static func finding(_ node: ClusterReport.Node, _ look: NodeStanding) -> Finding {
        let waited = node.metrics.value("reel_gateway_oldest_publish_seconds")
        let oldest = waited > 0 ? "; the oldest publish waits for \((waited * 10).rounded() / 10) s" : ""
        let detail = look.detail.isEmpty || look.detail.hasPrefix("the oldest publish") ? "" : "; \(look.detail)"
        return switch look.log {
        case "degraded":
            Finding(
                .warning,
                "log",
                "slow for \(node.name), or its last write failed\(oldest)\(detail)",
                do: "See whether a broker is gone or the log's disk is full. What was taken is answered later. After a"
                    + " failed write the next one that goes well ends this: publish an event, or ask again later."
            )
        case "unavailable":
            Finding(
                .problem,
                "log",
                "away for \(node.name): new publishes are nacked\(oldest)\(detail)",
                do: "Bring the brokers back, or make room on the disk of the log's file. Clients keep what they have "
                    + "and send it again; reading goes on."
            )
        case "ended":
            Finding(
                .warning,
                "log",
                "over for \(node.name): this epoch has ended and another one follows",
                do: "The node goes over to it by itself; restart it if it does not."
            )
        case "truncated":
            Finding(
                .problem,
                "log",
                "trimmed while \(node.name) did not read it: it does not continue by itself",
                do: "Another line, about its partitions, says what to do."
            )
        case "ahead_of_log":
            Finding(
                .problem,
                "log",
                "has lost what \(look.detail.isEmpty ? node.name : "a node") has read before: nothing is published"
                    + " to it\(look.detail.isEmpty ? "" : "; \(node.name) says: \(look.detail)")",
                do: "Bring it back as it was, or continue with what a snapshot node has folded:"
                    + " `reel epoch new --from-snapshot DIR`."
            )
        case "diverged":
            Finding(
                .problem,
                "log",
                "not the one that \(look.detail.isEmpty ? node.name : "a node") has read before: nothing is published"
                    + " to it\(look.detail.isEmpty ? "" : "; \(node.name) says: \(look.detail)")",
                do: "Bring the former log back, or continue with what a snapshot node has folded:"
                    + " `reel epoch new --from-snapshot DIR`."
            )
        default:
            Finding(
                .problem,
                "log",
                "\(node.name) does not continue: \(look.log)",
                do: "Its journal says more. Its files can be made anew from the log: stop it, move its data folder "
                    + "away, start it."
            )
        }
    }
}
