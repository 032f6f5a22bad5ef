import ReelCore
import Synchronization

/// The limit on tokens with a wrong signature from one address. A verification takes the event loop about as much time
/// as a small request, and a client needs no key to ask for one. Valid tokens cost nothing here.
final class WrongSignatures: Sendable {
    /// Wrong signatures of one address in a second.
    static let mostPerSecond = 100
    /// The shortest time that a client is told to wait, in milliseconds.
    private static let retryMsMin: Int64 = 1_000

    private let rate = Mutex(RateLimit<UInt64>(mostPerSecond))
    private let refused = Atomic(0)

    /// The number of verifications that were refused.
    var limited: Int { refused.load(ordering: .relaxed) }

    /// Charges an origin before a verification. The charge of a valid signature is given back. Throws `rate_limited` if
    /// the origin has used up its rate. Clients without an address of their own, on this machine, are not charged.
    func take(_ origin: UInt64, nowMs: Int64) throws(ReelError) {
        guard !Payer.address(origin).isLocal,
            let waitMs = rate.withLock({ $0.take(1, of: origin, nowMs: nowMs) })
        else { return }
        refused.add(1, ordering: .relaxed)
        throw ReelError(
            .rateLimited,
            "found more than \(Self.mostPerSecond) tokens with a wrong signature a second from one address, expected"
                + " valid tokens",
            retryMs: max(Self.retryMsMin, waitMs)
        )
    }

    /// Takes a charge back: the signature was valid.
    func giveBack(_ origin: UInt64) {
        guard !Payer.address(origin).isLocal else { return }
        rate.withLock { $0.giveBack(1, of: origin) }
    }

    /// Removes the origins whose buckets are full.
    func tick(nowMs: Int64) { rate.withLock { $0.tick(nowMs: nowMs) } }
}
