import ReelNode
import Synchronization

/// A limit on a resource that responses hold while they are made or read, on all loops. One payer holds at most a
/// quarter of it. So a client with many requests, or a slow reader, leaves permits for the others.
final class ResponseLimiter: Sendable {
    private let permits: Int
    private let open = Atomic<Int>(0)
    private let shares: PayerShares

    /// A limit of `most` permits. `share` is the maximum for one payer; nil: a quarter. Local payers have no such
    /// maximum.
    init(most: Int, share: Int? = nil) {
        permits = most
        shares = PayerShares(.standard(share ?? max(1, most / 4)))
    }

    /// Takes a permit, which is returned with the last reference to it. Nil: too many are taken, in total or by this
    /// payer. A nil `payer` means that the node takes the permit for itself.
    func take(for payer: Payer? = nil) -> Place? {
        guard open.add(1, ordering: .relaxed).newValue <= permits else {
            open.subtract(1, ordering: .relaxed)
            return nil
        }
        if let payer, !shares.take(for: payer) {
            open.subtract(1, ordering: .relaxed)
            return nil
        }
        return Place(self, payer)
    }

    /// True if no permit is free.
    var isFull: Bool { open.load(ordering: .relaxed) >= permits }

    /// A permit for one response.
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
