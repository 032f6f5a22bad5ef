import Glibc

/// What a write takes of a thread's processor time: the kernel's part most of all, which is not the same on two
/// machines, nor on one of them in two hours.
struct WriteCostEstimate {
    /// Fewer writes are not worth a look at the clock: nothing is learned from them.
    private static let countMin = 32

    /// Of one write, in the mean of the last ones.
    private(set) var micros = 10.0

    /// So many writes at most begin; what comes back is for their end.
    static func begin(_ count: Int) -> Double? { count < countMin ? nil : spentMicros() }

    /// So many writes have ended.
    mutating func end(_ count: Int, since begin: Double?) {
        guard let begin, count >= Self.countMin else { return }
        micros += ((Self.spentMicros() - begin) / Double(count) - micros) / 4
    }

    private static func spentMicros() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
    }
}
