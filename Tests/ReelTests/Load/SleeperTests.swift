import ReelCore
import ReelNet
import Testing

@testable import ReelLab

/// A client that was offline on purpose counts the time from when it wants to be back, whoever is there to welcome it.
@Suite struct SleeperTests {
    @Test func whatWaitsForAGatewayAfterARestIsLate() async throws {
        let loop = try EventLoop()
        defer { loop.stop() }
        let stream = try #require(StreamName("s"))
        let lateNs: Int64 = try await withCheckedThrowingContinuation { continuation in
            loop.execute {
                do {
                    let plan = LoadPlan(urls: ["http://127.0.0.1:1"], streams: [stream])
                    let stage = LoadStage(plan, try LoadGateways(plan), on: loop)
                    let client = LoadClient(.publisher, 0, on: stream, stage: stage)
                    client.publish(dueNs: Clock.nowNs())
                    client.rest(.milliseconds(10))
                    loop.timer(after: .milliseconds(300)) {
                        client.welcomed(Self.welcome, by: "http://127.0.0.1:1")
                        continuation.resume(returning: Clock.nowNs() - (client.queue.oldestDueNs ?? .max))
                        client.connection.close()
                        withExtendedLifetime(stage) {}
                    }
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
        #expect(lateNs > 200_000_000)
    }

    private static let welcome = ServerFrame.Welcome(
        node: "n",
        epoch: Epoch(1),
        number: 0,
        partitions: 1,
        limits: ServerFrame.Limits(frame: 1 << 20, event: 1 << 18, batch: 100, subscriptions: 10, fetch: 1_000),
        pingS: 8
    )
}
