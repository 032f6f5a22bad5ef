import ReelCore
import ReelLog

extension Diagnosis {
    /// How far nodes are behind. What was there at the first look must have been read by the second.
    var lag: [Finding] {
        let nodes = report.living.filter { $0.looks.count == 2 }
        guard let partitions = nodes.map({ $0.looks[0].partitions.count }).max() else { return [] }
        let first = heads(partitions, nodes.map { $0.looks[0] })
        let second = heads(partitions, nodes.map { $0.looks[1] })
        var findings: [Finding] = []
        for node in nodes {
            let behind = node.looks[1].partitions.enumerated().filter { $0.element.seq < first[$0.offset] }.map(
                \.offset
            )
            if !behind.isEmpty { findings.append(finding(node, behind, heads: second)) }
        }
        if findings.isEmpty {
            let most = second.max() ?? .none
            findings.append(
                Finding(
                    .ok,
                    "lag",
                    "every node has read what there was a second ago"
                        + (most == .none ? "; the log is empty" : "; the longest partition ends at seq \(most)")
                )
            )
        }
        return findings
    }

    /// The last seq of each partition that anybody knows of.
    private func heads(_ partitions: Int, _ standings: [NodeStanding]) -> [Seq] {
        var heads = [Seq](repeating: .none, count: partitions)
        for standing in standings {
            for (partition, place) in standing.partitions.enumerated() {
                heads[partition] = max(heads[partition], place.seq)
            }
        }
        if case .success(let log)? = report.log {
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
        let missing = behind.reduce(0) { $0 + heads[$1] - seq(1, $1) }
        let read = behind.reduce(0) { $0 + seq(1, $1) - seq(0, $1) }
        let list = behind.prefix(4).map { "partition \($0) at \(seq(1, $0)) of \(heads[$0])" }.joined(separator: ", ")
        let more = behind.count > 4 ? " and \(behind.count - 4) more" : ""
        let text = "\(node.name) is \(counted(Int(clamping: missing), "record")) behind: \(list)\(more)"
        guard read > 0 else {
            return Finding(
                .problem,
                "lag",
                text + "; it read none within a second",
                do:
                    "See its journal and the log's state. If they say nothing, restart it: it goes on from where it is."
            )
        }
        let perSecond = max(1, read * 1_000 / ClusterReport.pauseMs)
        return Finding(
            .warning,
            "lag",
            text + "; it reads \(perSecond) a second, which is \(missing / perSecond + 1) s more",
            do: "Wait. Until then what it has not read is answered by others, or after a while."
        )
    }
}
