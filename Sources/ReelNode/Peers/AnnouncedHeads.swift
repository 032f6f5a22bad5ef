package import ReelCore

/// Computes the lag of nodes from their announcements. An announcement is up to two seconds old. It is compared with
/// earlier announcements and never with later ones, since the node may have read those records by now. So the real lag
/// is at least the computed one.
package struct AnnouncedHeads {
    /// The seq from which on a position is implausible: at a million records a second a log reaches it after nine
    /// years.
    package static let implausibleSeq: Seq = 1 << 48

    /// By partition: each position beyond all earlier ones, and the time of its announcement.
    private var heads: [Int64: [(heardMs: Int64, seq: Seq)]] = [:]

    /// Heads without a position.
    package init() {}

    /// Heads from positions in any order. Implausible positions are ignored.
    package init(_ positions: [(partition: Int64, seq: Seq, heardMs: Int64)]) {
        for position in positions.sorted(by: { $0.heardMs < $1.heardMs }) {
            let known = heads[position.partition]?.last?.seq ?? .none
            guard position.seq > known, position.seq < Self.implausibleSeq else { continue }
            heads[position.partition, default: []].append((position.heardMs, position.seq))
        }
    }

    /// Returns the lag of a position in records: the distance to the highest position announced before it or with it.
    /// Nil: the position is implausible.
    ///
    /// - Parameters:
    ///   - partition: The number of the partition.
    ///   - seq: The announced position.
    ///   - heardMs: The time of the announcement in milliseconds, by the same clock as the times of all positions.
    package func lag(partition: Int64, seq: Seq, heardMs: Int64) -> Seq? {
        guard seq < Self.implausibleSeq else { return nil }
        let head = heads[partition]?.last { $0.heardMs <= heardMs }?.seq ?? .none
        return max(0, head - seq)
    }
}
