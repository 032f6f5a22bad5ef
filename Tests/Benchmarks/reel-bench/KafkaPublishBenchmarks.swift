import ReelLab

/// From the moment an event is due to its ack on a WebSocket, at 1,000 a second.
enum KafkaLatencyBenchmark {
    @Sendable static func run() async throws -> [Measured] {
        let (ours, raw) = try await KafkaPaired.run(rounds: 5) { node in
            try KafkaFloor.publish(5_000, through: node, perSecond: 1_000)
        } raw: {
            try $0.publish(5_000, perSecond: 1_000)
        }
        return [("p50", 0.5, 150.0), ("p99", 0.99, 1_000)].map { name, part, more in
            Measured(
                work: "publish → ack over a WebSocket, real Kafka, 1000/s, 200 B, \(name)",
                value: median(ours.map { $0.percentile(part) }),
                unit: "µs",
                peer: ("raw librdkafka produced → tailed", median(raw.map { $0.percentile(part) })),
                goal: .atMostAbove(more)
            )
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

/// Ours and the bare C program in turn, on the same brokers, after a first round that does not count.
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
                    for _ in 0..<rounds {
                        runs.ours.append(try ours(node))
                        runs.raw.append(try raw(floor))
                    }
                    return runs
                }
            }
        }
    }
}
