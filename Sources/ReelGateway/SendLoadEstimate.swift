/// What a loop would have to do to send each event by itself to all who listen, in all partitions: whether it is more
/// than it should take on.
///
/// Each batch adds the time that its writes take, and half of the time that passes is taken off: a loop has other
/// things to do, and so has the machine.
struct SendLoadEstimate {
    private static let share = 0.5
    /// A burst may add so much before it counts as a pace that a loop does not keep.
    private static let burstMs = 10.0
    /// So much is remembered of a time in which there was too much.
    private static let levelMsMax = 15.0

    private var levelMs = 0.0
    private var lastMs: Int64 = 0

    /// Writes of so many milliseconds more.
    mutating func add(_ writeMs: Double, nowMs: Int64) {
        levelMs = max(0, levelMs - Double(nowMs - lastMs) * Self.share)
        levelMs = min(levelMs + writeMs, Self.levelMsMax)
        lastMs = nowMs
    }

    /// Whether events had better wait for each other.
    var isTooMuch: Bool { levelMs > Self.burstMs }
}
