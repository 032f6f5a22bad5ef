package import ReelLog

/// The latest announcement of each node in `reel.nodes`, and when it was heard: by this reader's clock as far as it can
/// tell, since the clock of the announcing node may be wrong. Without effects.
package struct HeardNodes {
    /// By id.
    package private(set) var nodes: [String: NodeAnnouncement] = [:]
    /// The latest moment that a record so far names and that is not in the future.
    private var latestMs = Int64.min
    /// True once all was read that there was at the first question: what is read later is heard as it is announced.
    private var isCurrent = false

    /// Nothing was heard yet.
    package init() {}

    /// Takes the next record of the topic. Its place says when it was announced, too: not before the records that stand
    /// before it. So a node whose clock is behind is heard of like all others. A clock that is ahead of this reader's
    /// says nothing of other nodes.
    package mutating func hear(_ node: NodeAnnouncement, nowMs: Int64) {
        var node = node
        if node.atMs <= nowMs { latestMs = max(latestMs, node.atMs) }
        node.heardMs = isCurrent ? nowMs : min(nowMs, max(latestMs, node.atMs))
        nodes[node.id] = node
        if nodes.count >= 2 * NodeAnnouncement.nodesMax { bound() }
    }

    /// Keeps the nodes that were heard last.
    private mutating func bound() {
        guard nodes.count > NodeAnnouncement.nodesMax else { return }
        let latest = nodes.sorted { $0.value.heardMs > $1.value.heardMs }.prefix(NodeAnnouncement.nodesMax)
        nodes = Dictionary(uniqueKeysWithValues: latest.map { ($0.key, $0.value) })
    }

    /// All was read that there is. Forgets the nodes that were heard last before `oldestMs`.
    package mutating func hasReadAll(forgettingBefore oldestMs: Int64) {
        isCurrent = true
        nodes = nodes.filter { $0.value.heardMs >= oldestMs }
        bound()
    }
}
