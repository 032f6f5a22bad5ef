import Synchronization

/// The number of units of a common resource that each payer holds now. From any thread.
public final class PayerShares: Sendable {
    /// The maximum number of units for one payer.
    public let limit: PayerLimit
    private let held = Mutex<[Payer: Int]>([:])

    /// The shares of a resource of which no unit is held yet.
    public init(_ limit: PayerLimit) {
        self.limit = limit
    }

    /// Takes one unit for a payer. Returns false if the payer already holds its maximum.
    public func take(for payer: Payer) -> Bool {
        guard limit.holds(for: payer) else { return true }
        return held.withLock { held in
            guard held[payer, default: 0] < limit.most else { return false }
            held[payer, default: 0] += 1
            return true
        }
    }

    /// Takes one unit for a payer, which is returned with the last reference to it. Nil if the payer already holds its
    /// maximum.
    public func unit(for payer: Payer) -> Unit? { take(for: payer) ? Unit(self, payer) : nil }

    /// One unit of a payer.
    public final class Unit: Sendable {
        private let shares: PayerShares
        private let payer: Payer

        fileprivate init(_ shares: PayerShares, _ payer: Payer) {
            self.shares = shares
            self.payer = payer
        }

        deinit { shares.giveBack(of: payer) }
    }

    /// Returns units of a payer.
    public func giveBack(_ count: Int = 1, of payer: Payer) {
        guard count > 0, limit.holds(for: payer) else { return }
        held.withLock { held in
            let left = (held[payer] ?? 0) - count
            held[payer] = left > 0 ? left : nil
        }
    }
}
