import ReelNode

// What to conclude from the announcements of all nodes about each of them.
extension ClusterRow {
    /// How a node is.
    enum State: String {
        case ready
        case notReady = "not ready"
        /// The node said that it leaves, not long ago.
        case leaving
        case left
        /// The node has announced nothing for a while, though others have.
        case dead
        /// Another node has announced the same URL since.
        case replaced
        /// A node of an older build, which does not say whether it is ready.
        case unknown = "-"
    }

    /// A node that announces nothing for this time is dead, in milliseconds.
    static let patienceMs = Int64(PeerTable.patience / .milliseconds(1))

    /// A node that is this much older than another one with its URL, two announcements, has been replaced by it, in
    /// milliseconds. A node that goes on announcing is not: another one cannot hide it.
    private static let missedMs: Int64 = 4_000

    /// Sets the state of each row. `newestMs`: the age of the newest announcement, if a node was asked, which the log
    /// may be away from; 0 if the log was asked itself.
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

    /// False for a node that announces that it listens everywhere: others may say the same.
    private var namesItsPlace: Bool {
        guard let address = try? NodeAddress(url) else { return false }
        return !["0.0.0.0", "::"].contains(address.host)
    }

    /// The number of partitions that the node reads or folds.
    var partitionCount: Int { isThere ? Set(places.map(\.partition)).count : 0 }

    /// True if what the node announced last says something of now.
    var isThere: Bool { [.ready, .notReady, .unknown, .leaving].contains(state) }

    /// What is wrong with the node, in a few words; empty: nothing is known.
    var problem: String {
        if let fault { return fault }
        let stopped = Dictionary(grouping: isThere ? places.filter { $0.code != nil } : []) { $0.code ?? "" }
        return stopped.sorted { $0.key < $1.key }.map { code, places in
            let partitions = Set(places.map(\.partition)).sorted().map { "\($0)" }
            return "\(code) (partition \(partitions.joined(separator: ", ")))"
        }.joined(separator: "; ")
    }

    /// Nodes that are there first, by role and URL; then those that left, and at last the dead.
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
