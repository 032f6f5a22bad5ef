import Glibc

/// The clock on the wall, for people to read; nothing is decided by it.
public enum WallClock {
    /// Milliseconds since 1970.
    public static func nowMs() -> Int64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return Int64(now.tv_sec) * 1_000 + Int64(now.tv_nsec) / 1_000_000
    }
}
