import Synchronization

/// How much each payer holds now of something that all share.
public final class PayerShares: Sendable {
    /// How much each may hold.
    public let limit: PayerLimit
    private let held = Mutex<[Payer: Int]>([:])

    /// Nobody holds anything yet.
    public init(_ limit: PayerLimit) {
        self.limit = limit
    }

    /// Counts one more for a payer; false: it holds as much as it may.
    public func take(for payer: Payer) -> Bool {
        guard limit.holds(for: payer) else { return true }
        return held.withLock { held in
            guard held[payer, default: 0] < limit.most else { return false }
            held[payer, default: 0] += 1
            return true
        }
    }

    /// What a payer took is free again.
    public func giveBack(_ count: Int = 1, of payer: Payer) {
        guard count > 0, limit.holds(for: payer) else { return }
        held.withLock { held in
            let left = (held[payer] ?? 0) - count
            held[payer] = left > 0 ? left : nil
        }
    }
}
