import Foundation

/// The resources that a process has used, read from `/proc`.
enum Usage {
    /// Returns the time on all cores, in user space and in the kernel. Its resolution is a tick of 10 ms.
    static func cpuSeconds(of pid: Int32) throws -> Double {
        let stat = try String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)
        // The name of the process may contain any character, so the fields are counted from the end of the name.
        let fields = stat.split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 12, let user = Int(fields[11]), let system = Int(fields[12]) else {
            throw BenchmarkError("found \(stat), expected a process's stat")
        }
        return Double(user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// Waits until the process has used no tick for 100 ms.
    static func rests(_ pid: Int32) async throws {
        var (before, now) = (-1.0, try cpuSeconds(of: pid))
        while now > before {
            try await Task.sleep(for: .milliseconds(100))
            (before, now) = (now, try cpuSeconds(of: pid))
        }
    }

    /// Returns the resident memory of the process.
    static func residentBytes(of pid: Int32) throws -> Int { try bytes("VmRSS", of: pid) }

    /// Returns the highest resident memory of the process since `forgetPeak`.
    static func peakBytes(of pid: Int32) throws -> Int { try bytes("VmHWM", of: pid) }

    static func forgetPeak(of pid: Int32) throws {
        try "5".write(toFile: "/proc/\(pid)/clear_refs", atomically: false, encoding: .utf8)
    }

    /// Returns the time of this process on all cores. Its resolution is a microsecond.
    static func ownCPUSeconds() -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        let seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
        return Double(seconds) + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
    }

    /// Returns the time of the calling thread.
    static func ownThreadSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Returns the bytes that this process has passed to write calls.
    static func ownWrittenBytes() throws -> Int {
        let usage = try String(contentsOfFile: "/proc/self/io", encoding: .utf8)
        let line = usage.split(separator: "\n").first { $0.hasPrefix("wchar:") }
        guard let bytes = line?.split(separator: " ").last.flatMap({ Int($0) }) else {
            throw BenchmarkError("found no wchar in /proc/self/io")
        }
        return bytes
    }

    private static func bytes(_ name: String, of pid: Int32) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix(name + ":") }
        guard let kilobytes = line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Int($0) }) else {
            throw BenchmarkError("found no \(name) of process \(pid)")
        }
        return kilobytes << 10
    }
}
