import ReelCore
import ReelNode

extension LogState {
    /// Creates the state that follows from the waiting time of the oldest publish.
    init(waitedMs: Int64, _ settings: GatewaySettings) {
        self =
            waitedMs > settings.unavailableMs ? .unavailable : waitedMs > settings.degradedMs ? .degraded : .ok
    }

    /// A series of failed appends without a successful one.
    struct Failing {
        /// The error of the last failed append.
        var error: ReelError
        /// The times of the first and the last failure.
        var fromMs: Int64
        var toMs: Int64

        /// The time from the first failure to the last one, in milliseconds.
        var lastedMs: Int64 { toMs - fromMs }

        /// Returns the log's state. A gateway with few publishes may not try again for a long time, so one failure
        /// counts.
        func state(_ settings: GatewaySettings) -> LogState {
            max(.degraded, LogState(waitedMs: lastedMs, settings))
        }
    }

    /// The age of the node's own announcement in the log. It shows that the log can be written even if no client
    /// publishes.
    struct Announcing {
        /// The interval of announcements in milliseconds.
        let everyMs: Int64
        /// The time between two checks, in milliseconds, above which the process has stood still.
        private static let standstillMs: Int64 = 3_000
        /// The reason why the last announcement was not written; nil: it was, or it is under way.
        private(set) var error: ReelError?
        /// How long announcements are overdue, in milliseconds. One may be missed.
        private(set) var overdueMs: Int64 = 0
        private var writtenMs: Int64?
        private var lookedMs: Int64?

        init(everyMs: Int64) {
            self.everyMs = everyMs
        }

        /// Called when an announcement was written, or failed.
        mutating func ended(with failure: ReelError?, nowMs: Int64) {
            error = failure
            guard failure == nil else { return }
            (writtenMs, overdueMs) = (nowMs, 0)
        }

        /// Checks the clock. Called about once a second.
        mutating func look(nowMs: Int64) {
            // A process that has stood still has announced nothing. That says nothing about the log.
            let hasStoodStill = lookedMs.map { nowMs - $0 > Self.standstillMs } ?? true
            lookedMs = nowMs
            if hasStoodStill { writtenMs = nowMs }
            overdueMs = max(0, nowMs - (writtenMs ?? nowMs) - 2 * everyMs)
        }

        /// Returns the reason why the log counts as not writable; nil: no announcement is overdue for long.
        func refusal(_ settings: GatewaySettings) -> ReelError? {
            guard overdueMs > settings.degradedMs else { return nil }
            return error
                ?? ReelError(.logUnavailable, "the log has not taken the node's own announcement when it was due")
        }
    }
}
