/// An estimate of the work of sending each event separately to all listeners of a loop, in all partitions. It says if
/// that is more work than the loop should do.
///
/// It is a leaky bucket: each batch adds the time of its writes, and half of the elapsed time drains. The other half is
/// left for other work of the loop and of the machine.
struct SendLoadEstimate {
    /// The part of the elapsed time that drains.
    private static let drainShare = 0.5
    /// The level in milliseconds above which the load is too high. A burst below it is no lasting overload.
    private static let burstMs = 10.0
    /// The maximum level in milliseconds: a past overload is not remembered for longer than that takes to drain.
    private static let levelMsMax = 15.0

    private var levelMs = 0.0
    private var lastMs: Int64 = 0

    /// Adds writes that take `writeMs` milliseconds.
    mutating func add(_ writeMs: Double, nowMs: Int64) {
        levelMs = max(0, levelMs - Double(nowMs - lastMs) * Self.drainShare)
        levelMs = min(levelMs + writeMs, Self.levelMsMax)
        lastMs = nowMs
    }

    /// True if events should be coalesced.
    var isTooMuch: Bool { levelMs > Self.burstMs }
}
