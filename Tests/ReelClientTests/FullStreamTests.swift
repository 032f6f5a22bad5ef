import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// A stream that has the maximum number of sites.
@Suite(.timeLimit(.minutes(5))) struct FullStreamTests {
    @Test("a device that is new to a full stream appends nothing after a reconnect, and reports why it waits")
    func fullStream() async throws {
        let network = try FakeNetwork()
        let name = StreamName("todo")!
        try await network.on { network in
            for number in 0..<Limits.sites {
                let site = Site(high: 1, low: UInt64(number))
                network.append(name, SyncEvent.noop.encoded(base: Seq(number) - 1, author: .init(site: site, op: 0)))
            }
        }
        let client = try network.client()
        let notices = await client.notices()
        let stream = try await client.open("todo", from: .beginning)
        try await stream.publish(.insert("task", id: "1"))
        for await case .publishingPaused(_, let reason) in notices {
            #expect(reason.hasPrefix("too_many_sites"))
            break
        }
        for _ in 0..<3 {
            let subscribed = try await network.on { network in
                for connection in network.connections { connection.end("reset") }
                return network.subscribes.count
            }
            try await eventually { (try? await network.on { $0.subscribes.count > subscribed }) == true }
            try await stream.publish(.update("task", id: "1", ["n": 1]))
        }
        #expect(try await network.on { $0.log.count } == Limits.sites)
        await client.close()
    }
}
