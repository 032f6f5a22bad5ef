import ReelLog

/// What the nodes of a cluster announced, and when this one heard of it: by its own clock, for theirs may be wrong.
package struct NodesHeard {
    private(set) var nodes: [NodeAnnouncement] = []
    private var heard: [String: ContinuousClock.Instant] = [:]

    /// Who said nothing new for so long before the last that was heard, some five announcements, hangs or has gone.
    package static let patience = Duration.seconds(10)

    /// What is announced now.
    mutating func hear(_ announced: [NodeAnnouncement], now: ContinuousClock.Instant) {
        let before = Dictionary(nodes.map { ($0.id, $0.atMs) }, uniquingKeysWith: max)
        heard = Dictionary(
            announced.map { node in (node.id, before[node.id] == node.atMs ? heard[node.id] ?? now : now) },
            uniquingKeysWith: max
        )
        nodes = announced
    }

    /// Those that go on announcing. Where nothing is heard of anybody, it is the log that is away.
    var awake: [NodeAnnouncement] {
        guard let latest = heard.values.max() else { return [] }
        return nodes.filter { node in
            !node.hasLeft && heard[node.id].map { latest - $0 < Self.patience } ?? false
        }
    }
}
