import Dispatch
import Foundation
import ReelClient
import ReelCore
import ReelLab
import Synchronization

/// What publishers feel of a leader that is killed, beside what the bare C program feels of the same kill: one that
/// publishes as often as that does, and the many of a load run.
///
/// How long it takes differs by seconds from kill to kill, for all of them alike: so they are compared kill by kill.
enum KafkaLeaderKilledBenchmark {
    private static let kills = 9
    private static let perSecond = 500
    private static let seconds = 12

    /// In milliseconds.
    private struct Pauses {
        var one: Double
        /// The 99th percentile of the publishers.
        var many: Double
        var raw: Double
    }

    @Sendable static func run() async throws -> [Measured] {
        try await withFolder { folder in
            let stand = try KafkaStand(partitions: 1, in: folder)
            return try await stand.withGateways(3) { nodes in
                var pauses: [Pauses] = []
                for _ in 0..<kills { pauses.append(try await round(stand, nodes)) }
                return [
                    Measured(
                        work: "longest pause for a publisher, partition leader killed, median of \(kills)",
                        value: median(pauses.map(\.one)),
                        unit: "ms",
                        peer: ("raw librdkafka, same kill", median(pauses.map(\.raw)))
                    ),
                    Measured(
                        work: "the same beyond raw librdkafka's, kill by kill, median",
                        value: median(pauses.map { $0.one - $0.raw }),
                        unit: "ms",
                        goal: .atMost(300)
                    ),
                    Measured(
                        work: "100 that publish to 100 through 3 gateways, p99 beyond raw librdkafka's, median",
                        value: median(pauses.map { $0.many - $0.raw }),
                        unit: "ms",
                        goal: .atMost(300)
                    ),
                ]
            }
        }
    }

    private static func round(_ stand: KafkaStand, _ nodes: [LocalNode]) async throws -> Pauses {
        guard let stream = StreamName("load") else { throw BenchmarkError("no stream") }
        var plan = LoadPlan(urls: nodes.map(\.url), streams: [stream])
        (plan.publishers, plan.readers, plan.rate) = (100, 100, 200)
        let load = try LoadRun(plan)
        async let report = load.run()
        while try await load.statistics().acked < 400 { try await Task.sleep(for: .milliseconds(50)) }
        let (one, raw) = try kill(stand, nodes[0])
        load.stop()
        let pause = try await report.statistics.pause
        return Pauses(one: one, many: Double(pause.quantile(0.99)) / 1e6, raw: raw)
    }

    private static func kill(_ stand: KafkaStand, _ node: LocalNode) throws -> (one: Double, raw: Double) {
        let results = Mutex<(ours: Double?, raw: Double?, error: String?)>((nil, nil, nil))
        let leader = try stand.leader()
        let group = DispatchGroup()
        let count = perSecond * seconds
        // Both run at once, so one kill hits both.
        try stand.withFloor(stand.topic) { floor in
            for isOurs in [true, false] {
                let lent = Unshared((floor, node))
                DispatchQueue.global().async(group: group) {
                    do {
                        let (floor, node) = lent.value
                        let run =
                            isOurs
                            ? try node.publisher().publish(count, perSecond: perSecond)
                            : try KafkaPublisher.floor(floor).publish(count, perSecond: perSecond)
                        results.withLock {
                            if isOurs { $0.ours = run.longestPauseMs } else { $0.raw = run.longestPauseMs }
                        }
                    } catch {
                        results.withLock { $0.error = "\(error)" }
                    }
                }
            }
            Thread.sleep(forTimeInterval: 3)
            stand.kafka.kill(leader)
            group.wait()
        }
        try stand.kafka.start([leader])
        let found = results.withLock { $0 }
        guard let ours = found.ours, let raw = found.raw else {
            throw BenchmarkError(found.error ?? "a publisher did not end")
        }
        return (one: ours, raw: raw)
    }
}

/// A reference that one other thread uses while its owner waits.
private struct Unshared<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }
}

/// From the kill of the gateway that a client is connected with to its first ack through another one.
enum KafkaGatewayKilledBenchmark {
    private static let kills = 30

    @Sendable static func run() async throws -> [Measured] {
        try await withFolder { folder in
            let stand = try KafkaStand(partitions: 4, in: folder)
            let transport = try NetTransport()
            var pauses: [Double] = []
            for kill in 0..<kills { pauses.append(try await pause(stand, transport, "\(folder)/device-\(kill)")) }
            return [
                Measured(
                    work: "gateway killed: from the kill to the first ack through the other, p99 of \(kills)",
                    value: pauses.max() ?? 0,
                    unit: "ms",
                    goal: .atMost(2_000)
                ),
                Measured(work: "the same, median", value: median(pauses), unit: "ms"),
            ]
        }
    }

    private static func pause(_ stand: KafkaStand, _ transport: NetTransport, _ store: String) async throws -> Double {
        try await stand.withGateway { a in
            try await stand.withGateway { b in
                let client = try SyncClient(nodes: [a.url, b.url], store: .file(store), transport: transport)
                let stream = try await client.open("bench")
                try await stream.publish(.insert("counter", "1", ["total": 0])).acked()
                let connected = await client.connectedNode
                let victim = connected == a.url ? a : b
                victim.process.killNow()
                let killed = ContinuousClock.now
                let total = Event.update("counter", "1", operations: ["total": .increment(1)])
                try await stream.publish(total).acked()
                let taken = (ContinuousClock.now - killed).seconds * 1_000
                await client.close()
                return taken
            }
        }
    }
}

/// What a gateway costs that nobody speaks with.
enum KafkaIdleBenchmark {
    @Sendable static func run() async throws -> [Measured] {
        try await withFolder { folder in
            let stand = try KafkaStand(partitions: 16, in: folder)
            return try await stand.withGateway { node in
                let idle = try await IdleProcess.watch(node.process.pid, seconds: 60)
                return [
                    Measured(
                        work: "idle `reel gateway` on 16 partitions of a real Kafka, 60 s: CPU",
                        value: idle.percent,
                        unit: "% of a core",
                        goal: .atMost(1)
                    ),
                    Measured(work: "the same: memory", value: idle.mebibytes, unit: "MiB"),
                ]
            }
        }
    }
}
