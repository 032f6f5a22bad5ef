import ReelCore

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

    /// What it means that the oldest publish has waited so long.
    init(waitedMs: Int64, _ settings: GatewaySettings) {
        self =
            waitedMs > settings.unavailableMs ? .unavailable : waitedMs > settings.degradedMs ? .degraded : .ok
    }

    /// Why appends fail, one after the other.
    struct Failing {
        /// What the last one was answered with.
        var error: ReelError
        /// When the first one failed, and the last.
        var fromMs: Int64
        var toMs: Int64

        /// How long none went well, as far as any were tried.
        var lastedMs: Int64 { toMs - fromMs }
    }

    static func < (a: LogState, b: LogState) -> Bool { a.order < b.order }

    private var order: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}
