import ReelCore
import ReelLog

extension Diagnosis {
    /// How far nodes are behind. What was there at the first look must have been read by the second.
    var lag: [Finding] {
        // Who goes over to another epoch between the looks, or is in another, has other seqs.
        let nodes = report.living.filter { $0.looks.count == 2 && $0.looks[0].epoch == $0.looks[1].epoch }
        if nodes.isEmpty { return [] }
        var findings: [Finding] = []
        var most = Seq.none
        for (epoch, nodes) in Dictionary(grouping: nodes, by: \.looks[1].epoch) {
            let partitions = nodes.flatMap(\.looks).map(\.partitions.count).max() ?? 0
            let first = heads(partitions, nodes.map { $0.looks[0] }, of: epoch)
            let second = heads(partitions, nodes.map { $0.looks[1] }, of: epoch)
            most = max(most, second.max() ?? .none)
            let held = first.indices.filter { partition in
                nodes.count > 1 && nodes.allSatisfy { stands($0, partition, short: first[partition]) }
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
                    "\(Self.each(of: nodes.count)) has read what there was a second ago"
                        + (most == .none ? "; the log is empty" : "; the longest partition ends at seq \(most)")
                )
            )
        }
        return findings
    }

    private var isLogWell: Bool {
        if case .failure? = report.log { return false }
        return report.living.allSatisfy { ["ok", nil].contains($0.looks.last?.log) }
    }

    /// The node has read nothing of the partition between the looks, though there is more, and knows no reason.
    private func stands(_ node: ClusterReport.Node, _ partition: Int, short head: Seq) -> Bool {
        let places = node.looks.map(\.partitions)
        guard places.allSatisfy({ $0.indices.contains(partition) }) else { return false }
        return places[0][partition].seq == places[1][partition].seq && places[1][partition].seq < head
            && node.looks[1].reasonToStop(in: partition) == nil
    }

    /// What no node reads is not a node's fault.
    private static func heldBack(_ partitions: [Int], _ nodes: [ClusterReport.Node], heads: [Seq]) -> Finding {
        let list = partitions.prefix(4).map { partition in
            let read = nodes.map { $0.looks[1].partitions[partition].seq }.max() ?? .none
            return "partition \(partition) at \(read) of \(heads[partition])"
        }
        let more = partitions.count > 4 ? " and \(partitions.count - 4) more" : ""
        return Finding(
            .problem,
            "lag",
            "no node has read on within a second: \(list.joined(separator: ", "))\(more)",
            do: "It is the log that does not hand it out, not the nodes: see its brokers, or its disk. If they are "
                + "well, the nodes' journals say more."
        )
    }

    /// The last seq of each partition that anybody knows of.
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
        // What a node says may be any number: as doubles the sums cannot overflow.
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
                    text + "; it does not read on: \(reason)",
                    do: isLogWell
                        ? "If that names no newer version that it needs, see its journal, and restart it."
                        : "Another line, about the log, says what to do."
                )
            }
            return Finding(
                .problem,
                "lag",
                text + "; it read none within a second",
                do: isLogWell
                    ? "See its journal. If that says nothing, restart it: it goes on from where it is."
                    : "See to the log first, of which another line tells; it may be that it hands nothing out."
            )
        }
        let perSecond = max(1, read * 1_000 / Double(ClusterReport.pauseMs))
        return Finding(
            .warning,
            "lag",
            text + "; it reads \(whole(perSecond)) a second, which is \(whole(missing / perSecond + 1)) s more",
            do: "Wait. Until then what it has not read is answered by others, or after a while."
        )
    }
}
