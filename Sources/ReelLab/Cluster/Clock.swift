import Glibc

/// The clocks of this machine.
public enum Clock {
    /// Returns the milliseconds since 1970, by the machine's wall clock, which may go back.
    public static func wallMs() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// Returns nanoseconds of the monotonic clock, since some moment in the past.
    public static func nowNs() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Returns milliseconds of the monotonic clock, since some moment in the past.
    public static func nowMs() -> Int64 {
        nowNs() / 1_000_000
    }
}
