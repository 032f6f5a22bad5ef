import CFanOutFloor
import Glibc
import ReelLab

/// Clients that stop reading, read slowly, or publish without end, beside a thousand good ones: what these feel of it.
enum GatewayHarmBenchmark {
    private static let (stopped, slow, flooding): (Int32, Int32, Int32) = (100, 100, 4)
    /// Of all that flood.
    private static let floodPerSecond: Int32 = 20_000

    @Sendable static func run() async throws -> [Measured] {
        let pace = Pace(sockets: 1_000, streams: 1, subscriptions: 1, perSecond: 100)
        return try await GatewayStand.with(["--publishes-per-second", "200"]) { stand in
            let pid = stand.node.process.pid
            var (undisturbed, beside): ([Double], [Double]) = ([], [])
            for _ in 0..<5 {
                undisturbed.append(try pace.run(floor_reel, stand.port, pid: pid).p99Micros)
                guard let harm = floor_harm_begin(stand.port, stopped, slow, flooding, floodPerSecond) else {
                    throw BenchmarkError("the clients that do harm were refused: errno \(errno)")
                }
                let outcome = Result { try pace.run(floor_reel, stand.port, pid: pid).p99Micros }
                let published = floor_harm_end(harm)
                beside.append(try outcome.get())
                guard published > 0 else { throw BenchmarkError("one of the clients that do harm was cut off") }
            }
            return [
                Measured(
                    work: "100 events/s → 1000, beside \(stopped) that stop reading, \(slow) that read slowly and "
                        + "\(flooding) that publish \(floodPerSecond) events/s in all, 200 of each site allowed: p99",
                    value: median(beside),
                    unit: "µs",
                    peer: ("undisturbed", median(undisturbed)),
                    goal: .atMost(1.5)
                )
            ]
        }
    }
}
