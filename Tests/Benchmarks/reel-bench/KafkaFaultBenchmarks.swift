import Dispatch
import Foundation
import ReelClient
import ReelCore
import ReelLab
import Synchronization

/// Measures the pause of publishers when a leader is killed. One publisher sends as often as the bare C program, and a
/// load run has 100 publishers.
///
/// The duration of the fault differs between kills by seconds, for all of them alike. So the difference to the bare C
/// program is computed for each kill.
enum KafkaLeaderKilledBenchmark {
    private static let kills = 9
    private static let perSecond = 500
    private static let seconds = 12

    /// The longest pauses of one kill, in milliseconds.
    private struct Pauses {
        var one: Double
        /// The 99th percentile of the publishers of the load run.
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
                        work: "longest pause for a publisher: difference to raw librdkafka, median of \(kills) kills",
                        value: median(pauses.map { $0.one - $0.raw }),
                        unit: "ms",
                        goal: .atMost(300)
                    ),
                    Measured(
                        work: "pause of 100 publishers, 3 gateways, p99: difference to raw librdkafka, median",
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
        // Both publish at the same time, so that the same kill affects both.
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

/// A wrapper for a reference that another thread uses while its owner waits.
private struct Unshared<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }
}

/// Measures the time from the kill of a client's gateway to the client's first ack through another gateway.
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
                    work: "gateway killed: kill to first ack through the other gateway, p99 of \(kills)",
                    value: pauses.max() ?? 0,
                    unit: "ms",
                    goal: .atMost(2_000)
                ),
                Measured(work: "gateway killed: median of \(kills)", value: median(pauses), unit: "ms"),
            ]
        }
    }

    private static func pause(_ stand: KafkaStand, _ transport: NetTransport, _ store: String) async throws -> Double {
        try await stand.withGateway { a in
            try await stand.withGateway { b in
                let client = try SyncClient(nodes: [a.url, b.url], store: .file(store), transport: transport)
                let stream = try await client.open("bench")
                try await stream.publish(.insert("counter", id: "1", ["total": 0])).acked()
                let connected = client.status.connectedNode
                let victim = connected == a.url ? a : b
                victim.process.killNow()
                let killed = ContinuousClock.now
                let total = SyncEvent.update("counter", id: "1", operations: ["total": .increment(1)])
                try await stream.publish(total).acked()
                let taken = (ContinuousClock.now - killed).seconds * 1_000
                await client.close()
                return taken
            }
        }
    }
}

/// Measures the processor time and the memory of a gateway without clients.
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
                    Measured(
                        work: "idle `reel gateway` on 16 partitions of a real Kafka, 60 s: memory",
                        value: idle.mebibytes,
                        unit: "MiB"
                    ),
                ]
            }
        }
    }
}
