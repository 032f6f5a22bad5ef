import ReelCore
import Synchronization

/// The rate limit of tokens with a wrong signature from one address. A verification takes the event loop about as much
/// time as a small request, and a client needs no key to cause one. Valid tokens are not charged.
final class WrongSignatures: Sendable {
    /// The maximum number of wrong signatures of one address in a second.
    static let mostPerSecond = 100
    /// The minimum time after which a client may retry, in milliseconds.
    private static let retryMsMin: Int64 = 1_000

    private let start = ContinuousClock.now
    private let rate = Mutex(RateLimit<UInt64>(mostPerSecond))
    private let refused = Atomic(0)

    /// The number of verifications that were refused.
    var limited: Int { refused.load(ordering: .relaxed) }

    /// The time in milliseconds, of a clock that is never set back.
    private var nowMs: Int64 {
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        return seconds * 1_000 + attoseconds / 1_000_000_000_000_000
    }

    /// Charges an origin before a verification. The caller returns the charge if the signature is valid. Clients on
    /// this machine without an address of their own are not charged. Throws `rate_limited` if the origin has used up
    /// its rate.
    func take(_ origin: UInt64) throws(ReelError) {
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

    /// Returns a charge: the signature was valid.
    func giveBack(_ origin: UInt64) {
        guard !Payer.address(origin).isLocal else { return }
        rate.withLock { $0.giveBack(1, of: origin) }
    }

    /// Removes the origins that have no charge left.
    func tick() { rate.withLock { $0.tick(nowMs: nowMs) } }
}
