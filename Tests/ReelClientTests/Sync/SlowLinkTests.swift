import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// A connection that is slower than the events of a stream.
@Suite(.timeLimit(.minutes(5))) struct SlowLinkTests {
    /// Pushes events on one object, and answers no ping, until the device reads deltas.
    private func slowDown(_ network: FakeNetwork, _ client: SyncClient) async throws {
        try await network.on { $0.isSlow = true }
        try await eventually("the device reads deltas") {
            try await network.on { network in
                for _ in 0..<10 {
                    network.author(.update("m", id: "0", ["text": .string(String(repeating: "x", count: 2_000))]))
                }
                network.aheadMs += 100
                network.pushAll()
            }
            return await client.statistics.slowLinks == 1
        }
    }

    private func opened(_ network: FakeNetwork, _ start: StartPosition) async throws -> (SyncClient, SyncStream) {
        let client = try network.client()
        let stream = try await client.open("s", from: start)
        try await stream.publish(.insert("m", id: "0")).outcome()
        return (client, stream)
    }

    @Test("a device takes deltas in place of events, confirms its own events, and returns to the events") func returns()
        async throws
    {
        let network = try FakeNetwork()
        network.haste = 20
        let (client, stream) = try await opened(network, .snapshot)
        // Each delta stands for many events.
        try await network.on { network in
            let write: @Sendable () -> Void = {
                for _ in 0..<50 { network.author(.update("m", id: "0", ["n": .integer(Int64(network.head))])) }
            }
            network.lies["a"] = { _, frame in
                if case .unsubscribe = frame.body { write() }
                return false
            }
            network.answers["a"] = { target, _ in
                if target.contains("/delta") { write() }
                return nil
            }
        }
        try await slowDown(network, client)
        let deltas = await client.statistics.deltas
        try await eventually("deltas follow each other") { await client.statistics.deltas >= deltas + 3 }
        #expect(stream.status.connection != .live)
        #expect(try await network.on { $0.connections.allSatisfy(\.proven.isEmpty) }, "the device has unsubscribed")
        let outcome = try await stream.publish(.insert("m", id: "own")).outcome()
        guard case .applied = outcome else {
            Issue.record("found \(outcome)")
            return
        }
        try await network.on { ($0.answers, $0.isSlow) = ([:], false) }
        try await eventually("the events are short again") { stream.status.connection == .live }
        let head = try await network.on { $0.head }
        try await stream.waitUntil(seq: head)
        #expect(try stream.objects("m").count == 2)
        var fold = try await network.on { $0.fold(StreamName("s")!) }
        #expect(await stream.digest() == fold.digest())
        await client.close()
    }

    @Test("a device keeps the events of a stream whose objects are longer") func objectsAreLonger() async throws {
        let network = try FakeNetwork()
        let (client, stream) = try await opened(network, .snapshot)
        let text = String(repeating: "y", count: 200_000)
        try await stream.publish(.update("m", id: "0", ["long": .string(text)])).outcome()
        // The long event itself counts no longer.
        try await network.on { ($0.isSlow, $0.aheadMs) = (true, 10_000) }
        for _ in 0..<80 {
            try await network.on { network in
                network.author(.update("m", id: "0", ["n": .integer(Int64(network.head))]))
                network.aheadMs += 100
                network.pushAll()
            }
        }
        let head = try await network.on { $0.head }
        try await stream.waitUntil(seq: head)
        #expect(await client.statistics.slowLinks == 0)
        await client.close()
    }

    @Test("a device that has asked for all events keeps reading them") func beginning() async throws {
        let network = try FakeNetwork()
        let (client, stream) = try await opened(network, .beginning)
        try await network.on { $0.isSlow = true }
        for _ in 0..<80 {
            try await network.on { network in
                network.author(.update("m", id: "0", ["text": .string(String(repeating: "x", count: 1_000))]))
                network.aheadMs += 100
                network.pushAll()
            }
        }
        let head = try await network.on { $0.head }
        try await stream.waitUntil(seq: head)
        #expect(await client.statistics.deltas == 0)
        #expect(await client.statistics.slowLinks == 0)
        await client.close()
    }

    @Test("a device leaves a connection that keeps delivering what is no longer needed") func useless() async throws {
        let network = try FakeNetwork()
        let (client, _) = try await opened(network, .snapshot)
        // The delta does not arrive before the events.
        try await network.on { $0.hung = ["a"] }
        try await slowDown(network, client)
        let opened = try await network.on { $0.opened }
        try await eventually("another connection") {
            try await network.on { network in
                network.aheadMs += 500
                let event = network.events(StreamName("s")!, network.head, network.head)
                for connection in network.connections { connection.say(.events(event)) }
                return network.opened > opened
            }
        }
        await client.close()
    }
}
