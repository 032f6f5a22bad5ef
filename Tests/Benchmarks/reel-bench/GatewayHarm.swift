import CFanOutFloor
import Glibc
import ReelLab

/// Measures the effect of harmful clients on a thousand good ones. Harmful clients stop reading, read slowly, or flood
/// the gateway with permitted requests. In the undisturbed rounds, the large events are published too, but no client
/// reads them.
enum GatewayHarmBenchmark {
    private static let (stopped, slow): (Int32, Int32) = (100, 100)
    /// The number of clients of each kind of flood.
    private static let flooding: Int32 = 4
    /// The requests per second of all clients of a kind together.
    private static var flood: floor_flood {
        floor_flood(pings: 20_000, subscriptions: 2_000, fetches: 400, publishes: 8_000)
    }

    @Sendable static func run() async throws -> [Measured] {
        try await GatewayStand.with { stand in
            let questions = try stand.node.questions()
            var (undisturbed, beside): ([Double], [Double]) = ([], [])
            var floods: [floor_flood] = []
            for isDisturbed in turns(5).map({ !$0 }) {
                // Closing the earlier connections also uses the gateway's time, which must not affect the next
                // measurement.
                try await Usage.rests(stand.node.process.pid)
                let (p99Micros, answered) = try await round(stand, questions, isDisturbed: isDisturbed)
                if isDisturbed {
                    beside.append(p99Micros)
                    floods.append(answered)
                } else {
                    undisturbed.append(p99Micros)
                }
            }
            return [
                Measured(
                    work: "100 events/s → 1000, beside \(stopped) clients that stop reading 3.2 MB/s, \(slow) clients "
                        + "that read 4 kB/s of it, and \(4 * flooding) clients that flood with \(answers(floods)): p99",
                    value: median(beside),
                    unit: "µs",
                    peer: ("undisturbed", median(undisturbed)),
                    goal: .atMost(1.5)
                )
            ]
        }
    }

    private static func answers(_ floods: [floor_flood]) -> String {
        let kinds = [
            ("pings", floods.map(\.pings)), ("subscribes", floods.map(\.subscriptions)),
            ("fetches", floods.map(\.fetches)), ("publishes", floods.map(\.publishes)),
        ]
        return kinds.map { "\(Int(median($0.1).rounded())) \($0.0)/s" }.joined(separator: ", ")
    }

    /// Returns the p99 of the good clients, and the number of answered flood requests per second. A round ends when
    /// each slow client has received `lagged`; each of them has one subscription.
    private static func round(
        _ stand: GatewayStand,
        _ questions: Questions,
        isDisturbed: Bool
    ) async throws -> (p99Micros: Double, answered: floor_flood) {
        let pace = Pace(sockets: 1_000, streams: 1, subscriptions: 1, perSecond: 100, seconds: 3)
        let (unread, sipped): (Int32, Int32) = isDisturbed ? (stopped, slow) : (0, 0)
        let before = try await questions.metric("reel_gateway_lagged_total")
        guard let harm = floor_harm_begin(stand.port, unread, sipped, isDisturbed ? flooding : 0, flood) else {
            throw BenchmarkError("the harmful clients were refused: errno \(errno)")
        }
        var answered = floor_flood()
        let p99Micros: Double
        do {
            p99Micros = try pace.run(floor_reel, stand.port, pid: stand.node.process.pid).p99Micros
            let expected = before + Int(unread + sipped)
            try await questions.wait(for: "each slow client has lagged") {
                try await $0.metric("reel_gateway_lagged_total") >= expected
            }
        } catch {
            floor_harm_end(harm, &answered)
            throw error
        }
        guard floor_harm_end(harm, &answered) == 0 else {
            throw BenchmarkError("a harmful client was disconnected")
        }
        return (p99Micros, answered)
    }
}
