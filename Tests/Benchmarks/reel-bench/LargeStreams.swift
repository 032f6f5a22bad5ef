import Foundation
import ReelCore
import ReelLog
import ReelNode
import ReelSnapshot

/// Measures a snapshot node that folds updates of one stream that is twice as large as its cache, next to a node that
/// holds the same stream in memory. Each node runs in a process of its own, so that its memory can be measured.
enum LargeStreamBenchmark {
    private static let (objects, updates) = (100_000, 200_000)
    /// The size of a cache that holds the whole stream.
    private static let wholeBytes = 1 << 30
    /// Half of the memory that the stream takes by the node's estimate.
    private static let halfBytes = 64 << 20

    static func run() throws -> [Measured] {
        var (half, whole): ([[String: Double]], [[String: Double]]) = ([], [])
        try withFolder { folder in
            let path = folder + "/log.db"
            let log = try SQLiteLog(path: path, partitions: 1)
            defer { log.close() }
            try log.fill(BenchEvents.inserts(objects))
            for cache in [halfBytes, wholeBytes] {
                _ = try NodeWork.figures(of: path, into: folder + "/\(cache)", cachedBytes: cache, to: objects)
            }
            try log.fill(BenchEvents.updates(updates, of: objects))
            for isHalf in turns(5) {
                let cache = isHalf ? halfBytes : wholeBytes
                // Each round begins with the rows of the inserts.
                let copy = folder + "/round"
                try? FileManager.default.removeItem(atPath: copy)
                try FileManager.default.copyItem(atPath: folder + "/\(cache)", toPath: copy)
                let figures = try NodeWork.figures(of: path, into: copy, cachedBytes: cache, to: objects + updates)
                if isHalf { half.append(figures) } else { whole.append(figures) }
            }
        }
        func middle(_ rounds: [[String: Double]], _ name: String) throws -> Double {
            median(try rounds.map { try $0.figure(name) })
        }
        let work = "updates of a stream of \(objects) objects, twice as large as the cache"
        return [
            Measured(
                work: work,
                value: try middle(half, "rate"),
                unit: "events/s",
                peer: ("in memory", try middle(whole, "rate")),
                goal: .atLeast(0.5)
            ),
            Measured(
                work: work + ": highest memory of the process",
                value: try middle(half, "peak") / 1_048_576,
                unit: "MiB",
                peer: ("in memory", try middle(whole, "peak") / 1_048_576)
            ),
        ]
    }
}

/// The work of a snapshot node that runs in a process of its own.
enum NodeWork {
    /// The first argument of a process that runs such work.
    static let command = "node"

    /// Runs the work that the arguments name, in this process, and prints its figures. Returns the exit status.
    static func run(_ arguments: ArraySlice<String>) -> Int32 {
        let arguments = Array(arguments)
        do {
            guard arguments.count == 4, let cachedBytes = Int(arguments[2]), let last = Seq(arguments[3]) else {
                throw BenchmarkError("found \(arguments), expected a log, a folder, a size and a seq")
            }
            var settings = SnapshotSettings(folder: arguments[1])
            settings.cachedBytes = cachedBytes
            for (name, value) in try fold(arguments[0], settings, upTo: last) { print("\(name) \(value)") }
            return 0
        } catch {
            print("failed: \(error)")
            return 1
        }
    }

    /// Folds a log into a folder in a process of its own. Returns the rate and the highest memory.
    static func figures(of log: String, into folder: String, cachedBytes: Int, to end: Int) throws -> [String: Double] {
        try WorkProcess.figures([command, log, folder, "\(cachedBytes)", "\(end - 1)"])
    }

    private static func fold(_ path: String, _ settings: SnapshotSettings, upTo last: Seq) throws -> [String: Double] {
        let log = try SQLiteLog(path: path, partitions: 1)
        defer { log.close() }
        var first: Seq = -1
        var node: SnapshotNode?
        let taken = try seconds {
            let begun = try SnapshotNode(
                log: log,
                settings: settings,
                logger: Logger(threshold: .error),
                metrics: Metrics()
            )
            node = begun
            first = begun.positions[0]
            while begun.positions[0] < last { usleep(500) }
        }
        node?.close()
        return ["rate": Double(last - first) / taken, "peak": Double(try Usage.peakBytes(of: getpid()))]
    }
}
