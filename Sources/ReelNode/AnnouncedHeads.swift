package import ReelCore

/// How far nodes are behind, by what they announce. An announcement is up to two seconds old. It is compared with
/// what was announced before it and never with what came later, which the node may have read by now. So a lag is at
/// least the one shown.
package struct AnnouncedHeads {
    /// A partition with a seq from here on is implausible: at a million records a second a log gets there in nine
    /// years.
    package static let implausibleSeq: Seq = 1 << 48

    /// By partition: when a position beyond all earlier ones was announced, and the position.
    private var heads: [Int64: [(heardMs: Int64, seq: Seq)]] = [:]

    /// No position.
    package init() {}

    /// Heads from positions in any order. Implausible ones do not count.
    package init(_ positions: [(partition: Int64, seq: Seq, heardMs: Int64)]) {
        for position in positions.sorted(by: { $0.heardMs < $1.heardMs }) {
            let known = heads[position.partition]?.last?.seq ?? .none
            guard position.seq > known, position.seq < Self.implausibleSeq else { continue }
            heads[position.partition, default: []].append((position.heardMs, position.seq))
        }
    }

    /// The number of records that a position is behind the last one that was announced before it or with it; nil: the
    /// position is implausible.
    package func lag(partition: Int64, seq: Seq, heardMs: Int64) -> Seq? {
        guard seq < Self.implausibleSeq else { return nil }
        let head = heads[partition]?.last { $0.heardMs <= heardMs }?.seq ?? .none
        return max(0, head - seq)
    }
}
