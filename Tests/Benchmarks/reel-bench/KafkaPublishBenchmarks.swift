import ReelLab

/// From the moment an event is due to its ack on a WebSocket, at 1,000 a second. What the brokers take differs by more
/// from minute to minute than the goals are: so the difference is that of two rounds side by side.
enum KafkaLatencyBenchmark {
    private static let (rounds, each) = (61, 1_000)

    @Sendable static func run() async throws -> [Measured] {
        let (ours, raw) = try await KafkaPaired.run(rounds: rounds) { node in
            try KafkaFloor.publish(each, through: node, perSecond: 1_000)
        } raw: {
            try $0.publish(each, perSecond: 1_000)
        }
        return [("p50", 0.5, 150.0), ("p99", 0.99, 1_000)].flatMap { (name, part, more) -> [Measured] in
            let (own, floor) = (ours.map { $0.percentile(part) }, raw.map { $0.percentile(part) })
            return [
                Measured(
                    work: "publish → ack over a WebSocket, real Kafka, 1000/s, 200 B, \(name)",
                    value: median(own),
                    unit: "µs",
                    peer: ("raw librdkafka produced → tailed", median(floor))
                ),
                Measured(
                    work: "the same beyond raw librdkafka's, round by round, median of \(rounds)",
                    value: median(zip(own, floor).map { $0 - $1 }),
                    unit: "µs",
                    goal: .atMost(more)
                ),
            ]
        }
    }
}

/// Acked events a second with 4,096 under way, in frames of 64 and of one.
enum KafkaPipelineBenchmark {
    @Sendable static func run() async throws -> [Measured] {
        var alone: [Double] = []
        let (ours, raw) = try await KafkaPaired.run(rounds: 5) { node in
            alone.append(try KafkaFloor.publish(100_000, through: node, depth: 4_096).perSecond)
            return try KafkaFloor.publish(200_000, through: node, depth: 4_096, perFrame: 64)
        } raw: {
            try $0.publish(200_000, depth: 4_096)
        }
        let work = "acked publishes through one gateway, real Kafka, 200 B, 4096 under way"
        let peer = ("raw librdkafka", median(raw.map(\.perSecond)))
        return [
            Measured(
                work: "\(work), 64 a frame",
                value: median(ours.map(\.perSecond)),
                unit: "/s",
                peer: peer,
                goal: .atLeast(0.6)
            ),
            Measured(work: "\(work), one a frame", value: median(alone), unit: "/s", peer: peer),
        ]
    }
}

/// Ours and the bare C program in turn, on the same brokers, after a first round that does not count. What stands at
/// the same place in both was measured side by side.
enum KafkaPaired {
    static func run(
        rounds: Int,
        _ ours: (LocalNode) throws -> PublishRun,
        raw: (KafkaFloor) throws -> PublishRun
    ) async throws -> (ours: [PublishRun], raw: [PublishRun]) {
        try await withFolder { folder in
            let stand = try KafkaStand(partitions: 1, in: folder)
            return try await stand.withGateway { node in
                try stand.withFloor(KafkaStand.rawTopic) { floor in
                    _ = try KafkaFloor.publish(50_000, through: node, depth: 4_096, perFrame: 64)
                    _ = try floor.publish(50_000, depth: 4_096)
                    var runs: (ours: [PublishRun], raw: [PublishRun]) = ([], [])
                    for isOurs in turns(rounds) {
                        if isOurs { runs.ours.append(try ours(node)) } else { runs.raw.append(try raw(floor)) }
                    }
                    return runs
                }
            }
        }
    }
}
