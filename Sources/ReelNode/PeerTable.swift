import ReelCore
import ReelLog

/// What the nodes of a cluster announced, and when this one heard of it: by its own clock, for theirs may be wrong.
package struct PeerTable {
    /// The announcements as they were made.
    private(set) var announced: [NodeAnnouncement] = []
    /// The same, with no position beyond the end of the log.
    private(set) var nodes: [NodeAnnouncement] = []
    private var heard: [String: ContinuousClock.Instant] = [:]

    /// Who said nothing new for so long before the last that was heard, some five announcements, hangs or has gone.
    package static let patience = Duration.seconds(10)

    /// What is announced now. `ends`: the last seq of each partition of the log `epoch`.
    mutating func hear(
        _ announced: [NodeAnnouncement],
        epoch: Epoch,
        ends: [Seq],
        now: ContinuousClock.Instant
    ) {
        let before = Dictionary(nodes.map { ($0.id, $0.atMs) }, uniquingKeysWith: max)
        heard = Dictionary(
            announced.map { node in (node.id, before[node.id] == node.atMs ? heard[node.id] ?? now : now) },
            uniquingKeysWith: max
        )
        self.announced = announced
        nodes = announced.map { $0.clamped(to: ends, in: epoch) }
    }

    /// Those that go on announcing. Where nothing is heard of anybody, it is the log that is away.
    var awake: [NodeAnnouncement] {
        guard let latest = heard.values.max() else { return [] }
        return nodes.filter { node in
            !node.hasLeft && heard[node.id].map { latest - $0 < Self.patience } ?? false
        }
    }
}

extension NodeAnnouncement {
    /// The announcement with no position beyond the end of the log. A position may be invented, or be that of a log
    /// that has lost records. A node that reads another log keeps its positions: they are not compared with this one.
    func clamped(to ends: [Seq], in epoch: Epoch) -> NodeAnnouncement {
        guard self.epoch ?? epoch == epoch else { return self }
        func clamped(_ positions: [Position]) -> [Position] {
            positions.compactMap { position in
                guard ends.indices.contains(position.partition) else { return nil }
                return Position(partition: position.partition, seq: min(position.seq, ends[position.partition]))
            }
        }
        var node = self
        (node.positions, node.folded) = (clamped(positions), clamped(folded))
        return node
    }
}
