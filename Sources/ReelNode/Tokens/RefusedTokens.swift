import Synchronization

/// The number of refused tokens by reason. From any thread.
public final class RefusedTokens: Sendable {
    private let counts = Mutex<[TokenRefusal.Reason: Int]>([:])

    init() {}

    func add(_ reason: TokenRefusal.Reason) { counts.withLock { $0[reason, default: 0] += 1 } }

    /// Returns the number of tokens that were refused for this reason.
    public func count(_ reason: TokenRefusal.Reason) -> Int { counts.withLock { $0[reason] ?? 0 } }

    /// Registers the counts as metrics; without a gate they stay zero.
    static func register(_ gate: TokenGate?, _ metrics: Metrics) {
        for reason in TokenRefusal.Reason.allCases {
            metrics.counter(
                "reel_refused_tokens_total",
                "Requests and sockets refused because of a missing token or right, by reason.",
                labels: ["reason": reason.rawValue]
            ) { gate?.refused.count(reason) ?? 0 }
        }
    }
}
