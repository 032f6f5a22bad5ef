import Synchronization

/// A gateway's knowledge of the nodes that it asks for state: which of them it asks last, and how many more requests it
/// may hedge.
struct PeerRecord {
    /// A node and a partition of it; without a partition all of the node.
    private struct Place: Hashable {
        var node: String
        var partition: Int?
    }

    /// How long a silent node is asked last. After this time its announcements show whether it hangs.
    static let silentMs: Int64 = 15_000
    /// How long a node that has refused is asked after the others, for the same partition.
    static let refusedMs: Int64 = 1_000
    /// The maximum number of hedged requests in direct succession.
    static let hedgesMax = 10
    /// The number of questions that permit one more hedged request. So slow nodes get at most a tenth more requests.
    static let questionsPerHedge = 10

    private var lasts = ExpiringSet<Place>()
    private var credit = Self.hedgesMax * Self.questionsPerHedge

    /// Records that a question is asked.
    mutating func asks() {
        credit = min(credit + 1, Self.hedgesMax * Self.questionsPerHedge)
    }

    /// True if a question that waits for these nodes may be sent to one more. That is free if all of them are known to
    /// be silent: the request then replaces one.
    mutating func mayHedge(asked nodes: [String], nowMs: Int64) -> Bool {
        if nodes.allSatisfy({ isSilent($0, nowMs: nowMs) }) { return true }
        guard credit >= Self.questionsPerHedge else { return false }
        credit -= Self.questionsPerHedge
        return true
    }

    /// Records that a node was silent while another one answered, or for too long.
    mutating func wasSilent(_ node: String, nowMs: Int64) {
        lasts.insert(Place(node: node, partition: nil), untilMs: nowMs + Self.silentMs, nowMs: nowMs)
    }

    /// Records that a node could not answer for a partition.
    mutating func refused(_ node: String, _ partition: Int, nowMs: Int64) {
        lasts.insert(Place(node: node, partition: partition), untilMs: nowMs + Self.refusedMs, nowMs: nowMs)
    }

    /// Records that a node has answered for a partition.
    mutating func answered(_ node: String, _ partition: Int) {
        guard !lasts.isEmpty else { return }
        lasts.remove(Place(node: node, partition: nil))
        lasts.remove(Place(node: node, partition: partition))
    }

    /// True if the node was silent lately.
    func isSilent(_ node: String, nowMs: Int64) -> Bool {
        lasts.contains(Place(node: node, partition: nil), nowMs: nowMs)
    }

    /// True if the node has just refused for this partition.
    func hasRefused(_ node: String, _ partition: Int, nowMs: Int64) -> Bool {
        lasts.contains(Place(node: node, partition: partition), nowMs: nowMs)
    }
}

/// The record of a gateway, which all of its loops share.
final class PeerMemory: Sendable {
    private let record = Mutex(PeerRecord())

    /// Calls `body` with the record, under a lock. From any thread.
    func use<R: Sendable>(_ body: (inout PeerRecord) -> R) -> R { record.withLock { body(&$0) } }
}
