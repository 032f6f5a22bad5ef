/// How the log does, as a gateway sees it; each hides those before it.
enum LogState: String, CaseIterable, Comparable {
    case ok
    /// The oldest publish waits for long.
    case degraded
    /// It waits for so long that no new ones are taken. Reading goes on.
    case unavailable
    /// The epoch is over: what is published now belongs into the next. Reading goes on.
    case ended
    /// The log is not what was read before: nothing is served.
    case diverged

    static let degradedMs: Int64 = 2_000
    static let unavailableMs: Int64 = 5_000

    /// What it means that the oldest publish has waited so long.
    init(waitedMs: Int64) {
        self = waitedMs > Self.unavailableMs ? .unavailable : waitedMs > Self.degradedMs ? .degraded : .ok
    }

    static func < (a: LogState, b: LogState) -> Bool { a.order < b.order }

    private var order: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}
