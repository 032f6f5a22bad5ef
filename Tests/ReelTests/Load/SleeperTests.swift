import ReelBase
import ReelCore
import ReelNet
import Testing

@testable import ReelLab

/// Tests that a client that was offline on purpose measures delay from the time at which it wants to reconnect.
@Suite struct SleeperTests {
    @Test("a client counts its wait for a gateway after a rest as delay") func countsWaitAsDelay() async throws {
        let loop = try EventLoop()
        defer { loop.stop() }
        let stream = try #require(StreamName("s"))
        let (backNs, dueNs, welcomedNs) = try await withCheckedThrowingContinuation { continuation in
            loop.execute {
                do {
                    let plan = LoadPlan(urls: ["http://127.0.0.1:1"], streams: [stream])
                    let stage = LoadStage(plan, try LoadGateways(plan), on: loop)
                    let client = LoadClient(.publisher, 0, on: stream, stage: stage)
                    client.publish(dueNs: MonotonicClock.nowNs())
                    client.rest(.milliseconds(10))
                    Self.whenBack(client, loop) {
                        let welcomedNs = MonotonicClock.nowNs()
                        client.welcomed(Self.welcome, by: "http://127.0.0.1:1")
                        continuation.resume(returning: (client.backNs, client.queue.oldestDueNs, welcomedNs))
                        client.connection.close()
                        withExtendedLifetime(stage) {}
                    }
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
        #expect(dueNs == backNs)
        #expect(backNs < welcomedNs)
    }

    /// Runs the body once the client has rested, a few turns of the loop later.
    private static func whenBack(_ client: LoadClient, _ loop: EventLoop, _ body: @escaping () -> Void) {
        loop.timer(after: .milliseconds(5)) {
            if client.backNs < .max, MonotonicClock.nowNs() > client.backNs {
                body()
            } else {
                whenBack(client, loop, body)
            }
        }
    }

    static let welcome = ServerFrame.Welcome(
        node: "n",
        epoch: Epoch(1),
        number: 0,
        partitions: 1,
        limits: ServerFrame.Limits(frame: 1 << 20, event: 1 << 18, batch: 100, subscriptions: 10, fetch: 1_000),
        pingS: 8
    )
}
