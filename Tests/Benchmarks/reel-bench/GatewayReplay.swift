import CFanOutFloor
import Glibc
import ReelLab
import ReelLog

/// Measures the delivery of a long stream to one new client.
enum GatewayReplayBenchmark {
    private static let (objects, updates) = (1_000, 999_000)
    private static var events: Int { objects + updates }

    @Sendable static func run() async throws -> [Measured] {
        var (reel, redis, nats): ([Double], [Double], [Double]) = ([], [], [])
        try await withFolder { folder in
            let log = try SQLiteLog(path: folder + "/log.sqlite", partitions: 1)
            try log.fill(BenchEvents.inserts(objects))
            try log.fill(BenchEvents.updates(updates, of: objects))
            log.close()
            let keeping = try Nats.withStream(in: folder)
            guard floor_jetstream_fill(keeping.port, Int64(events)) == 0 else {
                throw BenchmarkError("JetStream did not take \(events) messages")
            }
            let streams = try Redis(in: folder, isDurable: false)
            try streams.fill(events)
            try await withReel(["gateway", "--log", "sqlite:\(folder)/log.sqlite"], in: folder) { node in
                guard let port = node.port else { throw BenchmarkError("found \(node.url), expected a port") }
                // A client that subscribes while the node still reads the log gets events at the rate of that read,
                // which is too fast.
                try await node.waitUntilReady()
                for _ in 0..<5 {
                    // An insert has five fields, and each field contains one mark.
                    reel.append(try replay(floor_reel, port, marks: 5 * objects + updates))
                    redis.append(Double(events) / (try streams.replay(events)))
                    nats.append(try replay(floor_jetstream, keeping.port, marks: events))
                }
            }
        }
        let peers = [("redis-server, 8 XREADs in flight", redis, 1.1), ("NATS ordered consumer", nats, 2.3)]
        return peers.map { name, peer, goal in
            Measured(
                work: "replay of \(events) events of 200 B to one client",
                value: median(reel),
                unit: "events/s",
                peer: (name, median(peer)),
                goal: .atLeast(goal)
            )
        }
    }

    private static func replay(_ server: floor_server, _ port: Int32, marks: Int) throws -> Double {
        let seconds = floor_replay(server, port, Int64(marks))
        guard seconds > 0 else { throw BenchmarkError("the replay of \(server) ended early: errno \(errno)") }
        return Double(events) / seconds
    }
}
