/// The events that wait for the log: of one loop, or of all loops together.
struct Backlog {
    var events = 0
    var bytes = 0
    /// How long the oldest event has waited, in milliseconds.
    var waitedMs: Int64 = 0

    /// An empty backlog.
    init() {}

    init(_ ledger: PublishLedger, nowMs: Int64) {
        events = ledger.count
        bytes = ledger.byteCount
        waitedMs = ledger.oldest.indices.map { ledger.waitedMs($0, nowMs: nowMs) }.max() ?? 0
    }

    static func + (a: Backlog, b: Backlog) -> Backlog {
        var sum = a
        sum.events += b.events
        sum.bytes += b.bytes
        sum.waitedMs = max(a.waitedMs, b.waitedMs)
        return sum
    }
}
