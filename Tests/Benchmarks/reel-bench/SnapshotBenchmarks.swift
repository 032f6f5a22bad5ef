import Foundation
import ReelCore
import ReelLog
import ReelNode
import ReelSnapshot

/// Measures a snapshot node that catches up with a log of updates, from the rows of the log to its own committed rows.
enum SnapshotWriterBenchmark {
    static func run() throws -> [Measured] {
        let objects = 10_000
        let updates = 200_000
        var rates: [Double] = []
        var (commits, checkpoints): ([Double], [Double]) = ([], [])
        for _ in 0..<5 {
            let result = try withFolder { folder in try once(folder, objects: objects, updates: updates) }
            rates.append(result.rate)
            commits.append(result.commitMs)
            checkpoints.append(result.checkpointMs)
        }
        return [
            Measured(
                work: "snapshot writer, \(objects) live objects",
                value: median(rates),
                unit: "events/s",
                goal: .atLeast(105_000)
            ),
            Measured(work: "snapshot writer: commit, p99", value: median(commits), unit: "ms", goal: .atMost(20)),
            Measured(
                work: "snapshot writer: checkpoint between two commits, p99",
                value: median(checkpoints),
                unit: "ms"
            ),
        ]
    }

    private static func once(
        _ folder: String,
        objects: Int,
        updates: Int
    ) throws -> (rate: Double, commitMs: Double, checkpointMs: Double) {
        let log = try SQLiteLog(path: folder + "/log.db", partitions: 1)
        defer { log.close() }
        try log.fill(BenchEvents.inserts(objects))
        let node = try SnapshotNode(
            log: log,
            settings: SnapshotSettings(folder: folder + "/snapshot"),
            logger: Logger(threshold: .error),
            metrics: Metrics()
        )
        while node.positions[0] < Seq(objects) - 1 { usleep(1_000) }
        node.close()
        try log.fill(BenchEvents.updates(updates, of: objects))
        let metrics = Metrics()
        let last = Seq(objects + updates) - 1
        let second = try SnapshotNode(
            log: log,
            settings: SnapshotSettings(folder: folder + "/snapshot"),
            logger: Logger(threshold: .error),
            metrics: metrics
        )
        defer { second.close() }
        let taken = seconds { while second.positions[0] < last { usleep(500) } }
        return (Double(updates) / taken, percentile99("commit", metrics), percentile99("checkpoint", metrics))
    }

    /// Returns the upper bound of the 99th percentile in the metrics, in milliseconds.
    private static func percentile99(_ work: String, _ metrics: Metrics) -> Double {
        let buckets = metrics.text().split(separator: "\n").filter {
            $0.hasPrefix("reel_snapshot_\(work)_seconds_b")
        }
        .map { line -> (bound: Double, count: Double) in
            let parts = line.split(separator: "\"")
            return (Double(parts[1]) ?? .infinity, Double(parts[2].dropFirst(2)) ?? 0)
        }
        let total = buckets.last?.count ?? 0
        return (buckets.first { $0.count >= 0.99 * total }?.bound ?? .infinity) * 1_000
    }
}
