import Glibc
import ReelBase
import ReelClient
import ReelCore

extension Demo {
    /// Lets all devices publish while a gateway gets SIGKILL.
    func killedGateway(_ publishers: [DemoDevice]) async throws {
        screen.chapter("A gateway is killed while four devices publish")
        let start = try await publishers[0].client.open(total)
        try await start.publish(.insert("counter", id: "1", ["total": 0])).acked()
        for device in publishers { screen.say("\(device.name) is at \(await device.node)") }
        let victim = cluster.a
        var moved: [DemoDevice] = []
        for device in publishers where device.client.status.connectedNode == victim.url { moved.append(device) }
        try await publish(from: publishers, pauseMs: 10_000) {
            victim.process.killNow()
            screen.say("SIGKILL to \(victim.name), pid \(victim.process.pid)")
        }
        for device in moved {
            screen.say(
                "\(device.name) went on at \(await device.node) after \(await device.client.statistics.failoverMs) ms"
            )
        }
    }

    /// Lets all devices publish while the broker that leads the stream's partition gets SIGKILL. Another broker takes
    /// over once the loss is detected, after a second and a half.
    func killedBroker(of brokers: LocalKafka, _ publishers: [DemoDevice]) async throws {
        screen.chapter("The leading broker is killed while four devices publish")
        let partition = StreamName(total)?.partition(of: DemoCluster.partitions) ?? 0
        let topic = "reel.\(try await epoch())"
        guard let victim = try brokers.leader(of: topic, partition) else {
            return screen.check(false, "no broker leads partition \(partition) of \(topic)")
        }
        try await publish(from: publishers, pauseMs: 30_000) {
            brokers.kill(victim)
            screen.say("SIGKILL to broker \(victim), the leader of partition \(partition) of \(topic)")
        }
        try brokers.start([victim])
        let next = try brokers.leader(of: topic, partition) ?? victim
        screen.check(next != victim, "broker \(next) leads it now; broker \(victim) is back")
    }

    private func epoch() async throws -> String {
        let body = try await cluster.get(cluster.b, "/v1/cluster")
        return try body.withUnsafeBytes {
            try JSONObject($0, levels: ClientFrame.levels, shape: .badFrame).string("epoch") ?? ""
        }
    }

    /// Lets all devices publish, and calls `strike` in the middle. Checks that nothing is lost or counted twice, and
    /// that no device waits longer than `pauseMs` for an ack.
    private func publish(from publishers: [DemoDevice], pauseMs: Int64, _ strike: () -> Void) async throws {
        var streams: [SyncStream] = []
        for device in publishers { streams.append(try await device.client.open(total)) }
        let before = try streams[0].confirmed.object("counter", id: "1")?["total"]?.number ?? 0
        let each = 250
        let all = each * publishers.count
        let (struckAtMs, rounds) = try await withThrowingTaskGroup(of: [Round].self) { group in
            for stream in streams {
                group.addTask { try await Self.publish(each, on: stream) }
            }
            try await Task.sleep(for: .milliseconds(700))
            let struckAtMs = MonotonicClock.nowMs()
            strike()
            var rounds: [Round] = []
            for try await device in group { rounds += device }
            return (struckAtMs, rounds)
        }
        screen.check(rounds.count == all, "\(rounds.count) of \(all) events acked, on \(publishers.count) devices")
        let pause = rounds.filter { $0.ackedAtMs >= struckAtMs }.map { $0.ackedAtMs - $0.publishedAtMs }.max() ?? 0
        screen.check(pause < pauseMs, "the longest wait for an ack around the kill: \(pause) ms")

        try await settle(streams, to: rounds.map(\.seq).max() ?? 0)
        for (device, stream) in zip(publishers, streams) {
            let count = try stream.confirmed.object("counter", id: "1")?["total"]?.number ?? -1
            screen.check(
                count == before + Double(all),
                "\(device.name) counts \(Int(count)): nothing lost, nothing twice"
            )
        }
    }

    /// One event and its ack.
    struct Round: Sendable {
        let publishedAtMs: Int64
        let ackedAtMs: Int64
        let seq: Seq
    }

    private static func publish(_ count: Int, on stream: SyncStream) async throws -> [Round] {
        var rounds: [Round] = []
        for _ in 0..<count {
            let start = MonotonicClock.nowMs()
            let increment = SyncEvent.update("counter", id: "1", operations: ["total": .increment(1)])
            guard let seq = try await stream.publish(increment).acked() else { continue }
            rounds.append(Round(publishedAtMs: start, ackedAtMs: MonotonicClock.nowMs(), seq: seq))
            try await Task.sleep(for: .milliseconds(5))
        }
        return rounds
    }
}
