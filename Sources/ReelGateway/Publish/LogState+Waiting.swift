import ReelCore
import ReelNode

extension LogState {
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
}
