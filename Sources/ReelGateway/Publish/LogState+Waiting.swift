import ReelCore
import ReelNode

extension LogState {
    /// What it means that the oldest publish has waited so long.
    init(waitedMs: Int64, _ settings: GatewaySettings) {
        self =
            waitedMs > settings.unavailableMs ? .unavailable : waitedMs > settings.degradedMs ? .degraded : .ok
    }

    /// Appends that failed, one after the other, and none that went well since.
    struct Failing {
        /// What the last one was answered with.
        var error: ReelError
        /// When the first one failed, and the last.
        var fromMs: Int64
        var toMs: Int64

        /// How long none went well, as far as any were tried.
        var lastedMs: Int64 { toMs - fromMs }

        /// The state that follows. A gateway with few publishes may not try again for long, so one failure counts.
        func state(_ settings: GatewaySettings) -> LogState {
            max(.degraded, LogState(waitedMs: lastedMs, settings))
        }
    }

    /// The age of the node's own announcement in the log: the sign that the log can be written though nobody publishes.
    struct Announcing {
        /// The time between two announcements.
        let everyMs: Int64
        /// A process that has not looked for longer stood still.
        private static let standstillMs: Int64 = 3_000
        /// Why the last announcement was not written; nil: it was, or it is under way.
        private(set) var error: ReelError?
        /// How long announcements are overdue. One may be missed.
        private(set) var overdueMs: Int64 = 0
        private var writtenMs: Int64?
        private var lookedMs: Int64?

        init(everyMs: Int64) {
            self.everyMs = everyMs
        }

        /// An announcement was written, or failed.
        mutating func ended(with failure: ReelError?, nowMs: Int64) {
            error = failure
            guard failure == nil else { return }
            (writtenMs, overdueMs) = (nowMs, 0)
        }

        /// Looks at the clock; about once a second.
        mutating func look(nowMs: Int64) {
            // Then it has announced nothing, which says nothing of the log.
            let hasStoodStill = lookedMs.map { nowMs - $0 > Self.standstillMs } ?? true
            lookedMs = nowMs
            if hasStoodStill { writtenMs = nowMs }
            overdueMs = max(0, nowMs - (writtenMs ?? nowMs) - 2 * everyMs)
        }

        /// Why the log counts as one that cannot be written; nil: no announcement is overdue for long.
        func refusal(_ settings: GatewaySettings) -> ReelError? {
            guard overdueMs > settings.degradedMs else { return nil }
            return error
                ?? ReelError(.logUnavailable, "the log has not taken the node's own announcement when it was due")
        }
    }
}
