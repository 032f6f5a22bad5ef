#if canImport(Darwin)
internal import Darwin
#else
internal import Glibc
#endif

/// The wall clock of the machine, which may go back. Nothing about events or their order depends on it. It gives the
/// times that people read, decides if a token has expired, and measures the windows of some limits.
package enum WallClock {
    /// Returns the milliseconds since 1970.
    package static func nowMs() -> Int64 { milliseconds(of: CLOCK_REALTIME) }
}

/// The monotonic clock of the machine, which begins at some moment in the past.
package enum MonotonicClock {
    /// Returns milliseconds.
    package static func nowMs() -> Int64 { milliseconds(of: CLOCK_MONOTONIC) }

    /// Returns nanoseconds.
    package static func nowNs() -> Int64 {
        let time = now(of: CLOCK_MONOTONIC)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

private func milliseconds(of clock: clockid_t) -> Int64 {
    let time = now(of: clock)
    return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
}

private func now(of clock: clockid_t) -> timespec {
    var time = timespec()
    clock_gettime(clock, &time)
    return time
}
