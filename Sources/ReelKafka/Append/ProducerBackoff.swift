/// When another producer may be made. What makes each of them fail at once is not tried more often than once a second;
/// a right that is missing, which a person has to give, ever more rarely.
struct ProducerBackoff: Sendable {
    private var madeMs: Int64?
    private var pauseMs = Self.pauseMinMs

    static let pauseMinMs: Int64 = 1_000
    static let pauseMaxMs: Int64 = 30_000

    /// A producer is of no use any more. `lacksRight`: the brokers did not let it begin.
    mutating func failed(lacksRight: Bool, hasDelivered: Bool) {
        pauseMs = lacksRight && !hasDelivered ? min(2 * pauseMs, Self.pauseMaxMs) : Self.pauseMinMs
    }

    /// Whether the next one may be made. If so, it is made now.
    mutating func begins(nowMs: Int64) -> Bool {
        if let madeMs, nowMs < madeMs + pauseMs { return false }
        madeMs = nowMs
        return true
    }
}
