import Glibc

/// The wall clock. Nothing about events or their order depends on it. It gives the times that people read, decides if a
/// token has expired, and measures the windows of some limits.
public enum WallClock {
    /// Returns the milliseconds since 1970.
    public static func nowMs() -> Int64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return Int64(now.tv_sec) * 1_000 + Int64(now.tv_nsec) / 1_000_000
    }
}
