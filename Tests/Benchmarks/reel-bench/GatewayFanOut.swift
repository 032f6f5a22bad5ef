import CFanOutFloor
import Glibc
import ReelLab

/// One publisher, 1,000 subscribers, small events, through a whole gateway and its durable log, against NATS: its core
/// keeps nothing; JetStream keeps all, with a consumer for each subscriber, as Reel has a position for each.
enum GatewayFanOutBenchmark {
    private static let windows: [Int32] = [16, 64, 256]
    private static let seconds = 1.0
    /// JetStream takes a second and more for half a window.
    private static let secondsOfJetStream = 5.0

    @Sendable static func core() async throws -> [Measured] {
        try await GatewayStand.with { stand in
            try windows.map { window in
                let goal: Measured.Goal? = window == windows.last ? .atLeast(2) : nil
                let port = stand.nats.port
                return try compare(stand, window, floor_nats, port, seconds, "nats-server over WebSocket", goal)
            }
        }
    }

    @Sendable static func jetStream() async throws -> [Measured] {
        try await GatewayStand.with { stand in
            let port = try stand.jetStream().port
            return try windows.suffix(1).map { window in
                let name = "JetStream, a consumer a client"
                return try compare(stand, window, floor_jetstream, port, secondsOfJetStream, name, .atLeast(4))
            }
        }
    }

    private static func compare(
        _ stand: GatewayStand,
        _ window: Int32,
        _ peer: floor_server,
        _ peerPort: Int32,
        _ peerSeconds: Double,
        _ name: String,
        _ goal: Measured.Goal?
    ) throws -> Measured {
        var (reel, other): ([FanOut], [FanOut]) = ([], [])
        for _ in 0..<5 {
            reel.append(try FanOut(floor_reel, port: stand.port, window: window, seconds: seconds))
            other.append(try FanOut(peer, port: peerPort, window: window, seconds: peerSeconds))
        }
        return Measured(
            work: "`reel gateway` fan-out 1 → 1000, 200 B, durable, \(window) under way,"
                + " \(reel[0].bytesEach) B a delivery to \(other[0].bytesEach)",
            value: median(reel.map(\.perSecond)),
            unit: "deliveries/s",
            peer: (name, median(other.map(\.perSecond))),
            goal: goal
        )
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
            throw BenchmarkError("the reader met a server that does not behave, \(server): errno \(errno)")
        }
        perSecond = Double(result.deliveries) / result.seconds
        bytesEach = Int(result.bytes / result.deliveries)
    }
}
