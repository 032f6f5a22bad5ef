import ReelBase
import ReelCore
import ReelNet
import Testing

@testable import ReelLab

/// Tests how a publisher of a load continues in the next epoch.
@Suite struct EpochOfLoadTests {
    /// Moves a publisher to a new epoch whose log knows the site up to `op`. Its events 0 and 1
    /// are acked, and event 2 is not.
    private func resume(knowing op: Op?) async throws -> (isAnotherSite: Bool, unacked: Int, handedOver: Op) {
        let loop = try EventLoop()
        defer { loop.stop() }
        return try await loop.run {
            let stream = try #require(StreamName("s"))
            let plan = LoadPlan(urls: ["http://127.0.0.1:1"], streams: [stream])
            let stage = LoadStage(plan, try LoadGateways(plan), on: loop)
            let client = LoadClient(.publisher, 0, on: stream, stage: stage)
            for _ in 0..<3 { client.publish(dueNs: MonotonicClock.nowNs()) }
            client.welcomed(SleeperTests.welcome, by: "http://127.0.0.1:1")
            let site = try #require(client.site)
            let acks = (0..<2).map { ServerFrame.Acked(site: site, op: $0, seq: $0) }
            client.received(ServerFrame(.ack(ServerFrame.Ack(stream: stream, epoch: Epoch(1), acks: acks))))
            client.resume(in: Epoch(2), knowing: op)
            defer { withExtendedLifetime(stage) { client.connection.close() } }
            return (client.site != site, client.queue.unacked, client.queue.handedOver)
        }
    }

    @Test(
        "a load client publishes the remaining events as another site if the log has fewer ops or unknown ops",
        arguments: [nil, 0] as [Op?]
    )
    func changesSite(op: Op?) async throws {
        let (isAnotherSite, unacked, handedOver) = try await resume(knowing: op)
        #expect(isAnotherSite && unacked == 1 && handedOver == 0)
    }

    @Test("a load client keeps its site when the log has all of its acked ops") func keepsSite() async throws {
        let (isAnotherSite, unacked, handedOver) = try await resume(knowing: 1)
        #expect(!isAnotherSite && unacked == 1 && handedOver == 2)
    }
}
