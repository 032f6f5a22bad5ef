import Glibc

/// An estimate of the processor time that one write costs a thread. Most of it is time in the kernel, which differs
/// between machines, and over hours on one machine.
struct WriteCostEstimate {
    /// The smallest number of writes that is measured. Fewer writes are not worth a reading of the clock.
    private static let countMin = 32

    /// The processor time of one write in microseconds: an exponential moving average.
    private(set) var micros = 10.0

    /// Called before at most `count` writes. Returns the start time for `end`; nil if the writes are too few to
    /// measure.
    static func begin(_ count: Int) -> Double? { count < countMin ? nil : spentMicros() }

    /// Called after `count` writes with the result of `begin`.
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
