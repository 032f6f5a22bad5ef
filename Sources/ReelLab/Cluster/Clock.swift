import Glibc

/// The clocks of this machine.
public enum Clock {
    /// Milliseconds since 1970, as the machine's clock on the wall says; it may go back.
    public static func wallMs() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// Nanoseconds on the monotonic clock, since some moment in the past.
    public static func nowNs() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Milliseconds on the monotonic clock, since some moment in the past.
    public static func nowMs() -> Int64 {
        nowNs() / 1_000_000
    }
}
