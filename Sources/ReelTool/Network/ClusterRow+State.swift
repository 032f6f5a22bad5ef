import ReelNode

// The state of each node, derived from the announcements of all nodes.
extension ClusterRow {
    /// The state of a node.
    enum State: String {
        case ready
        case notReady = "not ready"
        /// The node has announced recently that it leaves.
        case leaving
        case left
        /// The node has announced nothing for `patienceMs`, although others have.
        case dead
        /// Another node has announced the same URL since.
        case replaced
        /// The node has an older build, which does not announce whether it is ready.
        case unknown = "-"
    }

    /// The time in milliseconds after which a node without announcements is dead.
    static let patienceMs = Int64(PeerTable.patience / .milliseconds(1))

    /// The time in milliseconds, two announcements, after which a silent node is replaced by another one with the same
    /// URL. A node that still announces itself is never replaced, so another node cannot hide it.
    private static let missedMs: Int64 = 4_000

    /// Sets the state of each row. `newestMs`: if a node was asked, the age of the newest announcement in milliseconds,
    /// because the log can be unavailable for that node; 0 if the log itself was asked.
    static func conclude(_ rows: inout [ClusterRow], newestMs: Int64) {
        for index in rows.indices {
            let row = rows[index]
            let isOld = row.ageMs.map { $0 - newestMs >= patienceMs } ?? false
            let newerMs = (row.ageMs ?? .max) - (row.hasLeft ? 0 : missedMs)
            let isReplaced = rows.contains { other in
                other.url == row.url && row.namesItsPlace && other.ageMs ?? .max < newerMs
            }
            rows[index].state =
                if isReplaced {
                    .replaced
                } else if row.hasLeft {
                    isOld ? .left : .leaving
                } else if isOld {
                    .dead
                } else {
                    row.isReady.map { $0 ? .ready : .notReady } ?? .unknown
                }
        }
    }

    /// False for a node that announces 0.0.0.0 or `::`: other nodes can announce the same.
    private var namesItsPlace: Bool {
        guard let address = try? NodeAddress(url) else { return false }
        return !["0.0.0.0", "::"].contains(address.host)
    }

    /// The number of partitions that the node reads or folds.
    var partitionCount: Int { isThere ? Set(places.map(\.partition)).count : 0 }

    /// True if the node's last announcement is current.
    var isThere: Bool { [.ready, .notReady, .unknown, .leaving].contains(state) }

    /// The problem of the node, in a few words; empty if none is known.
    var problem: String {
        if let fault { return fault }
        let stopped = Dictionary(grouping: isThere ? places.filter { $0.code != nil } : []) { $0.code ?? "" }
        return stopped.sorted { $0.key < $1.key }.map { code, places in
            let partitions = Set(places.map(\.partition)).sorted().map { "\($0)" }
            return "\(code) (partition \(partitions.joined(separator: ", ")))"
        }.joined(separator: "; ")
    }

    /// Sorts rows: running nodes first, by role and URL; then nodes that have left, then dead nodes.
    static func isBefore(_ a: ClusterRow, _ b: ClusterRow) -> Bool {
        func rank(_ row: ClusterRow) -> Int {
            switch row.state {
            case .ready, .notReady, .unknown: 0
            case .leaving: 1
            case .left: 2
            case .dead: 3
            case .replaced: 4
            }
        }
        return (rank(a), a.role, a.url, a.id) < (rank(b), b.role, b.url, b.id)
    }
}
