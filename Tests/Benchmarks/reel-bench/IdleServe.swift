import Foundation
import ReelLab

/// Measures the memory and the processor time of a whole node without clients.
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

/// The highest memory of an idle process, and its part of a core.
struct IdleProcess {
    var mebibytes: Double
    var percent: Double

    /// Watches the process for `seconds` seconds, after a pause of two seconds.
    static func watch(_ pid: Int32, seconds: Int) async throws -> IdleProcess {
        try await Task.sleep(for: .seconds(2))
        let before = try Usage.cpuSeconds(of: pid)
        var most = 0
        for _ in 0..<seconds {
            try await Task.sleep(for: .seconds(1))
            most = max(most, try Usage.residentBytes(of: pid))
        }
        let busy = try Usage.cpuSeconds(of: pid) - before
        return IdleProcess(mebibytes: Double(most) / Double(1 << 20), percent: busy / Double(seconds) * 100)
    }
}
