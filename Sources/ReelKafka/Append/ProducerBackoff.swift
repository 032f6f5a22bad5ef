/// Decides when another producer may be made: at most once a second, so that a lasting cause does not make producers
/// fail in a fast loop. If a right is missing, which only an operator can grant, the pause doubles up to `pauseMaxMs`.
struct ProducerBackoff: Sendable {
    private var madeMs: Int64?
    private var pauseMs = Self.pauseMinMs

    static let pauseMinMs: Int64 = 1_000
    static let pauseMaxMs: Int64 = 30_000

    /// Notes that a producer is unusable.
    ///
    /// - Parameters:
    ///   - lacksRight: True if the brokers refused it for a missing right.
    ///   - hasDelivered: True if the brokers have accepted one of its records.
    mutating func failed(lacksRight: Bool, hasDelivered: Bool) {
        pauseMs = lacksRight && !hasDelivered ? min(2 * pauseMs, Self.pauseMaxMs) : Self.pauseMinMs
    }

    /// True if the next producer may be made now. The caller must then make it.
    mutating func begins(nowMs: Int64) -> Bool {
        if let madeMs, nowMs < madeMs + pauseMs { return false }
        madeMs = nowMs
        return true
    }
}
