import ReelCore
import ReelLog

extension Diagnosis {
    /// The findings about lag. At the second look, a node must have read all records that existed at the first.
    var lag: [Finding] {
        // Only nodes with one epoch at both looks: the seqs of different epochs cannot be compared.
        let nodes = report.living.filter { $0.looks.count == 2 && $0.looks[0].epoch == $0.looks[1].epoch }
        if nodes.isEmpty { return [] }
        var findings: [Finding] = []
        var last = Seq.none
        for (epoch, nodes) in Dictionary(grouping: nodes, by: \.looks[1].epoch) {
            let partitions = nodes.flatMap(\.looks).map(\.partitions.count).max() ?? 0
            let first = heads(partitions, nodes.map { $0.looks[0] }, of: epoch)
            let second = heads(partitions, nodes.map { $0.looks[1] }, of: epoch)
            last = max(last, second.max() ?? .none)
            let held = first.indices.filter { partition in
                nodes.count > 1 && nodes.allSatisfy { isStuck($0, partition, before: first[partition]) }
            }
            if !held.isEmpty { findings.append(Self.heldBack(held, nodes, heads: second)) }
            for node in nodes {
                let places = node.looks[1].partitions
                let behind = places.indices.filter { places[$0].seq < first[$0] && !held.contains($0) }
                if !behind.isEmpty { findings.append(finding(node, behind, heads: second)) }
            }
        }
        if findings.isEmpty {
            findings.append(
                Finding(
                    .ok,
                    "lag",
                    "\(Self.each(of: nodes.count)) has read all records that existed a second ago"
                        + (last == .none ? "; the log is empty" : "; the longest partition ends at seq \(last)")
                )
            )
        }
        return findings
    }

    private var isLogWell: Bool {
        if case .failure? = report.log { return false }
        return report.living.allSatisfy { ["ok", nil].contains($0.looks.last?.log) }
    }

    /// Returns true if the node has read nothing of the partition between the looks although it has not reached `head`,
    /// and reports no reason.
    private func isStuck(_ node: ClusterReport.Node, _ partition: Int, before head: Seq) -> Bool {
        let places = node.looks.map(\.partitions)
        guard places.allSatisfy({ $0.indices.contains(partition) }) else { return false }
        return places[0][partition].seq == places[1][partition].seq && places[1][partition].seq < head
            && node.looks[1].reasonToStop(in: partition) == nil
    }

    /// The finding for partitions that no node reads: the log is the cause, not the nodes.
    private static func heldBack(_ partitions: [Int], _ nodes: [ClusterReport.Node], heads: [Seq]) -> Finding {
        let list = partitions.prefix(4).map { partition in
            let read = nodes.map { $0.looks[1].partitions[partition].seq }.max() ?? .none
            return "partition \(partition) at \(read) of \(heads[partition])"
        }
        let more = partitions.count > 4 ? " and \(partitions.count - 4) more" : ""
        return Finding(
            .problem,
            "lag",
            "no node has read a record within a second: \(list.joined(separator: ", "))\(more)",
            do: "The cause is the log, not the nodes: check its brokers, or its disk. If they work, see the log lines "
                + "of the nodes."
        )
    }

    /// Returns the last seq of each partition that a node or the log reports.
    private func heads(_ partitions: Int, _ standings: [NodeStanding], of epoch: String) -> [Seq] {
        var heads = [Seq](repeating: .none, count: partitions)
        for standing in standings {
            for (partition, place) in standing.partitions.enumerated() {
                heads[partition] = max(heads[partition], place.head)
            }
        }
        if case .success(let log)? = report.log, log.epoch.description == epoch {
            for (partition, bounds) in log.bounds.enumerated() where heads.indices.contains(partition) {
                heads[partition] = max(heads[partition], bounds.last)
            }
        }
        return heads
    }

    private func finding(_ node: ClusterReport.Node, _ behind: [Int], heads: [Seq]) -> Finding {
        func seq(_ look: Int, _ partition: Int) -> Seq {
            let places = node.looks[look].partitions
            return places.indices.contains(partition) ? places[partition].seq : .none
        }
        // A node can report any number. As doubles, the sums cannot overflow.
        let missing = behind.reduce(0.0) { $0 + Double(heads[$1] - seq(1, $1)) }
        let read = behind.reduce(0.0) { $0 + Double(seq(1, $1) - seq(0, $1)) }
        let list = behind.prefix(4).map { "partition \($0) at \(seq(1, $0)) of \(heads[$0])" }.joined(separator: ", ")
        let more = behind.count > 4 ? " and \(behind.count - 4) more" : ""
        let text = "\(node.name) is \(counted(whole(missing), "record")) behind: \(list)\(more)"
        guard read > 0 else {
            if let reason = behind.lazy.compactMap(node.looks[1].reasonToStop).first {
                return Finding(
                    .problem,
                    "lag",
                    text + "; it has stopped: \(reason)",
                    do: isLogWell
                        ? "If the reason names a newer version, start that. Otherwise see its log lines and restart it."
                        : "Do what the line about the log says."
                )
            }
            return Finding(
                .problem,
                "lag",
                text + "; it has read none within a second",
                do: isLogWell
                    ? "See its log lines. If they give no reason, restart it: it continues at its position."
                    : "Solve the problem of the log first, see the line about it; it can be the cause."
            )
        }
        let perSecond = max(1, read * 1_000 / Double(ClusterReport.pauseMs))
        return Finding(
            .warning,
            "lag",
            text + "; it reads \(whole(perSecond)) a second, and needs about \(whole(missing / perSecond + 1)) s more",
            do: "Wait. Until then, requests for newer records are answered by other nodes, or later."
        )
    }
}
