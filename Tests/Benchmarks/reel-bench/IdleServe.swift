import Foundation
import ReelLab

/// A whole node that nobody speaks with: what it costs to have it there.
enum IdleServeBenchmark {
    private static let seconds = 60

    @Sendable static func run() async throws -> [Measured] {
        let idle = try await withFolder { folder in
            try await withReel(["serve", "--data", folder], in: folder) { node in
                try await IdleProcess.watch(node.process.pid, seconds: seconds)
            }
        }
        return [
            Measured(
                work: "idle `reel serve`, \(seconds) s: memory",
                value: idle.mebibytes,
                unit: "MiB",
                goal: .atMost(25)
            ),
            Measured(
                work: "idle `reel serve`, \(seconds) s: CPU",
                value: idle.percent,
                unit: "% of a core",
                goal: .atMost(0.2)
            ),
        ]
    }
}

/// What a process uses while nothing is asked of it: its most memory, and its part of a core.
struct IdleProcess {
    var mebibytes: Double
    var percent: Double

    /// Watches for so long, two seconds from now on.
    static func watch(_ pid: Int32, seconds: Int) async throws -> IdleProcess {
        try await Task.sleep(for: .seconds(2))
        let before = try processorTicks(pid)
        var most = 0
        for _ in 0..<seconds {
            try await Task.sleep(for: .seconds(1))
            most = max(most, try residentKilobytes(pid))
        }
        let busy = Double(try processorTicks(pid) - before) / Double(sysconf(Int32(_SC_CLK_TCK)))
        return IdleProcess(mebibytes: Double(most) / 1024, percent: busy / Double(seconds) * 100)
    }

    /// What the process has used of all cores, in user space and in the kernel.
    private static func processorTicks(_ pid: Int32) throws -> Int {
        let stat = try String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)
        // Behind the name, which may hold anything: the state, then fields 4 and on.
        let fields = stat.split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 12, let user = Int(fields[11]), let system = Int(fields[12]) else {
            throw BenchmarkError("found \(stat), expected a process's stat")
        }
        return user + system
    }

    private static func residentKilobytes(_ pid: Int32) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        guard let kilobytes = line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Int($0) }) else {
            throw BenchmarkError("found no VmRSS of process \(pid)")
        }
        return kilobytes
    }
}
