import ReelCore
import ReelLog

/// The announcements of the nodes of a cluster, and when this node received them by its own clock. The clocks of other
/// nodes may be wrong.
package struct PeerTable {
    /// The announcements as they were made.
    private(set) var announced: [NodeAnnouncement] = []
    /// The announcements with no position beyond the end of the log.
    private(set) var nodes: [NodeAnnouncement] = []
    private var heardAt: [String: ContinuousClock.Instant] = [:]

    /// The age, relative to the latest announcement of any node, from which on a node counts as hanging or gone: about
    /// five announcements.
    package static let patience = Duration.seconds(10)

    /// Takes over the current announcements. `ends` is the last seq of each partition of the log `epoch`.
    mutating func hear(
        _ announced: [NodeAnnouncement],
        epoch: Epoch,
        ends: [Seq],
        now: ContinuousClock.Instant
    ) {
        let before = Dictionary(nodes.map { ($0.id, $0.atMs) }, uniquingKeysWith: max)
        heardAt = Dictionary(
            announced.map { node in (node.id, before[node.id] == node.atMs ? heardAt[node.id] ?? now : now) },
            uniquingKeysWith: max
        )
        self.announced = announced
        nodes = announced.map { $0.clamped(to: ends, in: epoch) }
    }

    /// The nodes that still announce themselves. If no announcement arrives from any node, the log is unavailable, and
    /// all of these nodes still count as alive.
    var alive: [NodeAnnouncement] {
        guard let latest = heardAt.values.max() else { return [] }
        return nodes.filter { node in
            !node.hasLeft && heardAt[node.id].map { latest - $0 < Self.patience } ?? false
        }
    }
}

extension NodeAnnouncement {
    /// Returns the announcement with no position beyond the end of the log. A position may be invented, or belong to a
    /// log that has lost records. A node that reads another log keeps its positions: they are not compared with this
    /// log.
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
