import Synchronization

/// How many tokens were refused, by reason.
public final class RefusedTokens: Sendable {
    private let counts = Mutex<[TokenRefusal.Reason: Int]>([:])

    init() {}

    func add(_ reason: TokenRefusal.Reason) { counts.withLock { $0[reason, default: 0] += 1 } }

    /// How many were refused for this reason.
    public func count(_ reason: TokenRefusal.Reason) -> Int { counts.withLock { $0[reason] ?? 0 } }

    /// Makes the counts metrics; without a gate they stay zero.
    static func register(_ gate: TokenGate?, _ metrics: Metrics) {
        for reason in TokenRefusal.Reason.allCases {
            metrics.counter(
                "reel_refused_tokens_total",
                "Requests and sockets that were refused for want of a token or of a right, by reason.",
                labels: ["reason": reason.rawValue]
            ) { gate?.refused.count(reason) ?? 0 }
        }
    }
}
