import ReelLab

/// Measures the time from the moment at which an event is due to its ack on a WebSocket, at 1,000 events per second.
/// The speed of the brokers drifts by more than the goals. So the goals are for the difference between two rounds that
/// follow each other. The bare relay shows the cost of a socket in front of librdkafka.
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
                    work: "publish → ack, \(name): difference to raw librdkafka, median of \(rounds) rounds",
                    value: beyond(micros[0]),
                    unit: "µs",
                    goal: .atMost(more)
                ),
                Measured(
                    work: "bare C relay, \(name): difference to raw librdkafka, median of \(rounds) rounds",
                    value: beyond(micros[2]),
                    unit: "µs"
                ),
            ]
        }
    }
}

/// Measures acked events per second with 4,096 in flight, in frames of 64 events and of one event.
enum KafkaPipelineBenchmark {
    @Sendable static func run() async throws -> [Measured] {
        var alone: [Double] = []
        let runs = try await KafkaRounds.run(5) { publisher in
            if case .socket = publisher { alone.append(try publisher.publish(100_000, depth: 4_096).perSecond) }
            return try publisher.publish(200_000, depth: 4_096, perFrame: 64)
        }
        let work = "acked publishes through one gateway, real Kafka, 200 B, 4096 in flight"
        let peer = ("raw librdkafka", median(runs[1].map(\.perSecond)))
        return [
            Measured(
                work: "\(work), 64 events a frame",
                value: median(runs[0].map(\.perSecond)),
                unit: "/s",
                peer: peer,
                goal: .atLeast(0.6)
            ),
            Measured(work: "\(work), one event a frame", value: median(alone), unit: "/s", peer: peer),
        ]
    }
}

/// Rounds of a gateway, the bare C program and optionally the bare relay, in turn on the same brokers. The first round
/// does not count. Runs with the same index were measured directly after each other.
enum KafkaRounds {
    /// Returns the runs of each publisher.
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
                        // The order is reversed in every second round, so that a drift of the machine affects all
                        // publishers equally.
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
