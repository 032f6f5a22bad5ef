package import ReelLog

/// The latest announcement of each node in `reel.nodes`, and when it was received. That time is by this reader's clock
/// where possible, since the clock of the announcing node may be wrong. Pure.
package struct HeardNodes {
    /// The announcements, by node id.
    package private(set) var nodes: [String: NodeAnnouncement] = [:]
    /// The latest time in the records read up to now that is not in the future.
    private var latestMs = Int64.min
    /// True once the first read has reached the end. Later records are received as they are announced.
    private var isCurrent = false

    /// Creates an empty set.
    package init() {}

    /// Takes the next record of the topic, at `nowMs`.
    ///
    /// An announcement was made no earlier than the latest time in the records before it. So a node with a slow clock
    /// gets a correct time like all others. A clock that is ahead of this reader's does not affect other nodes.
    package mutating func hear(_ node: NodeAnnouncement, nowMs: Int64) {
        var node = node
        if node.atMs <= nowMs { latestMs = max(latestMs, node.atMs) }
        node.heardMs = isCurrent ? nowMs : min(nowMs, max(latestMs, node.atMs))
        nodes[node.id] = node
        if nodes.count >= 2 * NodeAnnouncement.nodesMax { bound() }
    }

    /// Removes all but the nodes with the latest announcements.
    private mutating func bound() {
        guard nodes.count > NodeAnnouncement.nodesMax else { return }
        let latest = nodes.sorted { $0.value.heardMs > $1.value.heardMs }.prefix(NodeAnnouncement.nodesMax)
        nodes = Dictionary(uniqueKeysWithValues: latest.map { ($0.key, $0.value) })
    }

    /// Called when all records were read. Removes the nodes with a last announcement before `oldestMs`.
    package mutating func hasReadAll(forgettingBefore oldestMs: Int64) {
        isCurrent = true
        nodes = nodes.filter { $0.value.heardMs >= oldestMs }
        bound()
    }
}
