import ReelNode
import Synchronization

/// A bound on something that answers hold while they are made or read, on all loops; no payer holds more than a quarter
/// of it, so that a client with many questions, or a slow reader, leaves places for the others.
final class ResponseLimiter: Sendable {
    private let most: Int
    private let open = Atomic<Int>(0)
    private let shares: PayerShares

    /// `share`: what one payer holds at most; nil: a quarter.
    init(most: Int, share: Int? = nil) {
        self.most = most
        shares = PayerShares(.standard(share ?? max(1, most / 4)))
    }

    /// A place for an answer, given back with the last reference to it; nil: too many are under way, in all or for this
    /// payer. Nil for the payer: the node itself asks.
    func take(for payer: Payer? = nil) -> Place? {
        guard open.add(1, ordering: .relaxed).newValue <= most else {
            open.subtract(1, ordering: .relaxed)
            return nil
        }
        if let payer, !shares.take(for: payer) {
            open.subtract(1, ordering: .relaxed)
            return nil
        }
        return Place(self, payer)
    }

    /// True if there is no free place.
    var isFull: Bool { open.load(ordering: .relaxed) >= most }

    /// One answer under way.
    final class Place: Sendable {
        private let answers: ResponseLimiter
        private let payer: Payer?

        fileprivate init(_ answers: ResponseLimiter, _ payer: Payer?) {
            self.answers = answers
            self.payer = payer
        }

        deinit {
            answers.open.subtract(1, ordering: .relaxed)
            if let payer { answers.shares.giveBack(of: payer) }
        }
    }
}
