import ReelLab

/// From the moment an event is due to its ack on a WebSocket, at 1,000 a second. What the brokers take differs by more
/// from minute to minute than the goals are: so the difference is that of two rounds side by side. The bare relay shows
/// what a socket in front of librdkafka takes by itself.
enum KafkaLatencyBenchmark {
    private static let (rounds, each) = (61, 1_000)

    @Sendable static func run() async throws -> [Measured] {
        let runs = try await KafkaRounds.run(rounds, hasRelay: true) { try $0.publish(each, perSecond: 1_000) }
        return [("p50", 0.5, 150.0), ("p99", 0.99, 1_000)].flatMap { (name, part, more) -> [Measured] in
            let micros = runs.map { $0.map { $0.percentile(part) } }
            func beyond(_ own: [Double]) -> Double { median(zip(own, micros[1]).map { $0 - $1 }) }
            return [
                Measured(
                    work: "publish → ack over a WebSocket, real Kafka, 1000/s, 200 B, \(name)",
                    value: median(micros[0]),
                    unit: "µs",
                    peer: ("raw librdkafka produced → tailed", median(micros[1]))
                ),
                Measured(
                    work: "the same beyond raw librdkafka's, round by round, median of \(rounds)",
                    value: beyond(micros[0]),
                    unit: "µs",
                    goal: .atMost(more)
                ),
                Measured(
                    work: "a bare C relay's beyond raw librdkafka's, round by round, \(name)",
                    value: beyond(micros[2]),
                    unit: "µs"
                ),
            ]
        }
    }
}

/// Acked events a second with 4,096 under way, in frames of 64 and of one.
enum KafkaPipelineBenchmark {
    @Sendable static func run() async throws -> [Measured] {
        var alone: [Double] = []
        let runs = try await KafkaRounds.run(5) { publisher in
            if case .socket = publisher { alone.append(try publisher.publish(100_000, depth: 4_096).perSecond) }
            return try publisher.publish(200_000, depth: 4_096, perFrame: 64)
        }
        let work = "acked publishes through one gateway, real Kafka, 200 B, 4096 under way"
        let peer = ("raw librdkafka", median(runs[1].map(\.perSecond)))
        return [
            Measured(
                work: "\(work), 64 a frame",
                value: median(runs[0].map(\.perSecond)),
                unit: "/s",
                peer: peer,
                goal: .atLeast(0.6)
            ),
            Measured(work: "\(work), one a frame", value: median(alone), unit: "/s", peer: peer),
        ]
    }
}

/// A gateway, the bare C program and, if wanted, the bare relay in turn, on the same brokers, after a first round that
/// does not count. What stands at the same place of each was measured side by side.
enum KafkaRounds {
    /// The runs of each.
    static func run(
        _ rounds: Int,
        hasRelay: Bool = false,
        _ body: (KafkaPublisher) throws -> PublishRun
    ) async throws -> [[PublishRun]] {
        try await withFolder { folder in
            let stand = try KafkaStand(partitions: 1, in: folder)
            return try await stand.withGateway { node in
                try stand.withFloor(KafkaStand.rawTopic) { floor in
                    let relay = hasRelay ? try stand.relay() : nil
                    var publishers = [try node.publisher(), .floor(floor)]
                    if let relay { publishers.append(.socket(port: relay.port)) }
                    for publisher in publishers { _ = try publisher.publish(50_000, depth: 4_096) }
                    var runs = [[PublishRun]](repeating: [], count: publishers.count)
                    for round in 0..<rounds {
                        // Who came first is last in the next round: a machine that drifts drifts for all.
                        for index in round.isMultiple(of: 2) ? Array(runs.indices) : runs.indices.reversed() {
                            runs[index].append(try body(publishers[index]))
                        }
                    }
                    return runs
                }
            }
        }
    }
}
