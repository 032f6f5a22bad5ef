import CFanOutFloor
import Glibc
import ReelLab

/// Clients that stop reading, read slowly, or flood with what everybody may ask for, beside a thousand good ones: what
/// these feel of it. Undisturbed there is the publisher of big events as well, which the others do not read.
enum GatewayHarmBenchmark {
    private static let (stopped, slow): (Int32, Int32) = (100, 100)
    /// Of each kind.
    private static let flooding: Int32 = 4
    /// In a second, by all of a kind together.
    private static var flood: floor_flood {
        floor_flood(pings: 20_000, subscriptions: 2_000, fetches: 400, publishes: 8_000)
    }

    @Sendable static func run() async throws -> [Measured] {
        try await GatewayStand.with { stand in
            let questions = try stand.node.questions()
            var (undisturbed, beside): ([Double], [Double]) = ([], [])
            var floods: [floor_flood] = []
            for isDisturbed in turns(5).map({ !$0 }) {
                // Letting go of those of before costs the gateway as well.
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
                    work: "100 events/s → 1000, beside \(stopped) that stop reading 3.2 MB/s, \(slow) that read 4 kB/s "
                        + "of it and \(4 * flooding) that flood with \(answers(floods)): p99",
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

    /// The good clients' p99, and what was answered of the flood. Ends only once everybody that does not keep up has
    /// been told so: each has one subscription.
    private static func round(
        _ stand: GatewayStand,
        _ questions: Questions,
        isDisturbed: Bool
    ) async throws -> (p99Micros: Double, answered: floor_flood) {
        let pace = Pace(sockets: 1_000, streams: 1, subscriptions: 1, perSecond: 100, seconds: 3)
        let (unread, sipped): (Int32, Int32) = isDisturbed ? (stopped, slow) : (0, 0)
        let before = try await questions.metric("reel_gateway_lagged_total")
        guard let harm = floor_harm_begin(stand.port, unread, sipped, isDisturbed ? flooding : 0, flood) else {
            throw BenchmarkError("the clients that do harm were refused: errno \(errno)")
        }
        var answered = floor_flood()
        let p99Micros: Double
        do {
            p99Micros = try pace.run(floor_reel, stand.port, pid: stand.node.process.pid).p99Micros
            let expected = before + Int(unread + sipped)
            try await questions.wait(for: "all that do not keep up have lagged") {
                try await $0.metric("reel_gateway_lagged_total") >= expected
            }
        } catch {
            floor_harm_end(harm, &answered)
            throw error
        }
        guard floor_harm_end(harm, &answered) == 0 else {
            throw BenchmarkError("one of the clients that do harm was cut off")
        }
        return (p99Micros, answered)
    }
}
