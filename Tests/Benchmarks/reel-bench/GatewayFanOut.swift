import CFanOutFloor
import Glibc
import ReelLab

/// One publisher, 1,000 subscribers, small events, through a whole gateway and its durable log, against NATS: its core
/// keeps nothing; JetStream keeps all, with a consumer for each subscriber, as Reel has a position for each.
enum GatewayFanOutBenchmark {
    private static let windows: [Int32] = [16, 64, 256]
    private static let seconds = 1.0

    @Sendable static func run() async throws -> [Measured] {
        try await GatewayStand.with { stand in
            var lines: [Measured] = []
            for window in windows {
                let isFull = window == windows.last
                var (reel, core, kept): ([FanOut], [FanOut], [FanOut]) = ([], [], [])
                for _ in 0..<5 {
                    reel.append(try FanOut(floor_reel, port: stand.port, window: window, seconds: seconds))
                    core.append(try FanOut(floor_nats, port: stand.nats.port, window: window, seconds: seconds))
                    guard isFull else { continue }
                    kept.append(
                        try FanOut(floor_jetstream, port: stand.jetStream().port, window: window, seconds: seconds)
                    )
                }
                let peers =
                    [("nats-server over WebSocket", core, isFull ? Measured.Goal.atLeast(2) : nil)]
                    + (isFull ? [("JetStream, a consumer a client", kept, .atLeast(4))] : [])
                for (name, peer, goal) in peers {
                    lines.append(
                        Measured(
                            work: "`reel gateway` fan-out 1 → 1000, 200 B, durable, \(window) under way,"
                                + " \(reel[0].bytesEach) B a delivery to \(peer[0].bytesEach)",
                            value: median(reel.map(\.perSecond)),
                            unit: "deliveries/s",
                            peer: (name, median(peer.map(\.perSecond))),
                            goal: goal
                        )
                    )
                }
            }
            return lines
        }
    }
}

/// How one publisher and 1,000 subscribers fared.
struct FanOut {
    var perSecond: Double
    /// What a delivery cost on the wire.
    var bytesEach: Int

    /// With so many messages under way.
    init(_ server: floor_server, port: Int32, window: Int32, seconds: Double) throws {
        var result = floor_result()
        guard floor_drive(server, port, 1000, window, seconds, &result) == 0, result.deliveries > 0 else {
            throw BenchmarkError("the reader met a server that does not behave: errno \(errno)")
        }
        perSecond = Double(result.deliveries) / result.seconds
        bytesEach = Int(result.bytes / result.deliveries)
    }
}
