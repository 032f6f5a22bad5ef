import Glibc
import ReelClient
import ReelCore

extension Demo {
    /// All devices publish while a gateway gets SIGKILL.
    func killedGateway(_ publishers: [DemoDevice]) async throws {
        screen.chapter("A gateway is killed while four devices publish")
        let start = try await publishers[0].client.open(counter)
        try await start.publish(.insert("counter", "1", ["total": 0])).acked()
        var streams: [SyncStream] = []
        for device in publishers {
            streams.append(try await device.client.open(counter))
            screen.say("\(device.name) is at \(await device.node)")
        }
        let victim = cluster.a
        var moved: [DemoDevice] = []
        for device in publishers where await device.client.connectedNode == victim.url { moved.append(device) }

        let each = 250
        let total = each * publishers.count
        let rounds = try await withThrowingTaskGroup(of: [Round].self) { group in
            for (index, stream) in streams.enumerated() {
                group.addTask { try await Self.publish(each, on: stream, site: index) }
            }
            try await Task.sleep(for: .milliseconds(700))
            let killedAtMs = Clock.nowMs()
            victim.process.killNow()
            screen.say("SIGKILL to \(victim.name), pid \(victim.process.pid)")
            var rounds: [[Round]] = []
            for try await device in group { rounds.append(device) }
            return (killedAtMs, rounds)
        }
        let acked = rounds.1.joined().count
        screen.check(acked == total, "\(acked) of \(total) events acked, on \(publishers.count) devices")
        for device in moved {
            screen.say(
                "\(device.name) went on at \(await device.node) after \(await device.client.statistics.failoverMs) ms"
            )
        }
        let pause = rounds.1.map { Self.longestPause($0, around: rounds.0) }.max() ?? 0
        screen.check(pause < 2_000, "the longest wait for an ack around the kill: \(pause) ms")

        let head = rounds.1.joined().map(\.seq).max() ?? 0
        try await settle(streams, to: head)
        for (device, stream) in zip(publishers, streams) {
            let count = await stream.object("counter", "1")?["total"]?.number ?? -1
            screen.check(count == Double(total), "\(device.name) counts \(Int(count)): nothing lost, nothing twice")
        }
    }

    /// One event and its ack.
    struct Round: Sendable {
        let publishedAtMs: Int64
        let ackedAtMs: Int64
        let seq: Seq
    }

    private static func publish(_ count: Int, on stream: SyncStream, site: Int) async throws -> [Round] {
        var rounds: [Round] = []
        for _ in 0..<count {
            let start = Clock.nowMs()
            let increment = Event.update("counter", "1", operations: ["total": .increment(1)])
            guard let seq = try await stream.publish(increment).acked() else { continue }
            rounds.append(Round(publishedAtMs: start, ackedAtMs: Clock.nowMs(), seq: seq))
            try await Task.sleep(for: .milliseconds(5))
        }
        return rounds
    }

    private static func longestPause(_ rounds: [Round], around moment: Int64) -> Int64 {
        rounds.filter { $0.ackedAtMs >= moment }.map { $0.ackedAtMs - $0.publishedAtMs }.max() ?? 0
    }
}
