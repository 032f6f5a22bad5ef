import CFanOutFloor
import Glibc
import ReelLab

/// Measures one publisher, 1,000 subscribers and small events, through a gateway with its durable log. The peers are
/// core NATS, which stores nothing, and JetStream, which stores all messages. JetStream has a consumer for each
/// subscriber, because Reel has a position for each subscriber too.
enum GatewayFanOutBenchmark {
    private static let windows: [Int32] = [16, 64, 256]
    private static let seconds = 1.0
    /// JetStream takes more than a second for half a window.
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
                let name = "JetStream, one consumer a client"
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
            work: "`reel gateway` fan-out 1 → 1000, 200 B, durable, \(window) in flight,"
                + " \(reel[0].bytesEach) B a delivery, peer \(other[0].bytesEach) B",
            value: median(reel.map(\.perSecond)),
            unit: "deliveries/s",
            peer: (name, median(other.map(\.perSecond))),
            goal: goal
        )
    }
}

/// The result of a fan-out from one publisher to 1,000 subscribers.
struct FanOut {
    var perSecond: Double
    /// The bytes on the wire for each delivery.
    var bytesEach: Int

    /// Measures a server with up to `window` messages in flight.
    init(_ server: floor_server, port: Int32, window: Int32, seconds: Double) throws {
        var result = floor_result()
        guard floor_drive(server, port, 1000, window, seconds, &result) == 0, result.deliveries > 0 else {
            throw BenchmarkError("the reader found an invalid answer of \(server): errno \(errno)")
        }
        perSecond = Double(result.deliveries) / result.seconds
        bytesEach = Int(result.bytes / result.deliveries)
    }
}
