import Glibc

/// The monotonic clock.
public enum Clock {
    /// Nanoseconds since some moment in the past.
    public static func nowNs() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Milliseconds since some moment in the past.
    public static func nowMs() -> Int64 {
        nowNs() / 1_000_000
    }
}
