import CFanOutFloor
import Glibc
import ReelLab

/// Clients that come and stay.
enum GatewayConnectionsBenchmark {
    /// How fast 5,000 that come at once are subscribed.
    @Sendable static func connect() async throws -> [Measured] {
        try await GatewayStand.with { stand in
            var (reel, nats): ([Double], [Double]) = ([], [])
            for _ in 0..<5 {
                reel.append(try Herd(floor_reel, stand.port, count: 5_000).perSecond)
                nats.append(try Herd(floor_nats, stand.nats.port, count: 5_000).perSecond)
            }
            return [
                Measured(
                    work: "5,000 clients connect and subscribe at once",
                    value: median(reel),
                    unit: "/s",
                    peer: ("nats-server over WebSocket", median(nats)),
                    goal: .atLeast(2)
                )
            ]
        }
    }

    /// What a subscribed client that hears nothing costs.
    @Sendable static func idle() async throws -> [Measured] {
        try await GatewayStand.with { stand in
            let pid = stand.node.process.pid
            // What is allocated once is not theirs.
            let first = try Herd(floor_reel, stand.port, count: 100)
            let before = try Usage.residentBytes(of: pid)
            var herds = [first]
            var lines: [Measured] = []
            for (more, all) in [(5_000, 5_000), (10_000, 15_000)] {
                herds.append(try Herd(floor_reel, stand.port, count: more))
                lines.append(
                    Measured(
                        work: "memory of a subscribed connection, of \(all)",
                        value: Double(try Usage.residentBytes(of: pid) - before) / Double(all),
                        unit: "B",
                        goal: .atMost(1_500)
                    )
                )
            }
            return withExtendedLifetime(herds) { lines }
        }
    }
}

/// Clients that were connected at once, each with a subscription; they leave with this.
final class Herd {
    let perSecond: Double
    private var descriptors: [Int32]

    init(_ server: floor_server, _ port: Int32, count: Int) throws {
        var seconds = 0.0
        descriptors = [Int32](repeating: -1, count: count)
        guard floor_herd(server, port, Int32(count), &descriptors, &seconds) == 0 else {
            descriptors = []
            throw BenchmarkError("not all of \(count) clients were taken: errno \(errno)")
        }
        perSecond = Double(count) / seconds
    }

    deinit {
        for descriptor in descriptors { close(descriptor) }
    }
}
