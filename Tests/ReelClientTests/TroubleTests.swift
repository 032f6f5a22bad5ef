import ReelCore
import Testing

@testable import ReelClient

/// What a node may say besides events, and how a device goes on.
@Suite(.timeLimit(.minutes(5))) struct TroubleTests {
    @Test func aNodeThatAsksToBeLeftIsLeftForOneThatItNames() async throws {
        let network = try FakeNetwork()
        let client = try network.client(nodes: ["a"])
        let stream = try await client.open("s", from: .all)
        try await stream.publish(.insert("m", "0")).fate()
        try await network.on { $0.sayToAll(.goaway(afterMs: 5, nodes: ["b"])) }
        try await eventually { await client.connectedNode == "b" }
        try await stream.publish(.insert("m", "1")).fate()
        #expect(try await network.on { $0.log.count } == 2)
        #expect(await client.nodes == ["a", "b"])
        await client.close()
    }

    @Test func aNewEpochKeepsTheQueueAndNothingOfTheOldLog() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try network.client(store: .file(path), seed: 2)
        let stream = try await client.open("s")
        for id in 0..<6 { try await stream.publish(.insert("old", "\(id)")).fate() }
        try await network.on { $0.down = ["a"] }
        try await network.on { $0.kill("a") }
        let kept = try await stream.publish(.insert("new", "0"))
        let guarded = try await stream.publish(Event(.update("old", "0", ["a": 1]).guarded(["a": -1])))
        try await network.on { network in
            network.beginEpoch(Epoch(2))
            // In the new log others have the seqs that were ours.
            network.skip(8)
            network.down = []
        }
        guard case .applied(8) = try await kept.fate() else { throw Wrong() }
        guard case .refused(let error) = try await guarded.fate(), error.code == .epochChanged else { throw Wrong() }
        #expect(await stream.objects("old").isEmpty)
        let digest = await stream.digest
        await client.close()

        let later = try network.client(store: .file(path), seed: 2)
        try await network.on { $0.down = ["a"] }
        let again = try await later.open("s")
        #expect(await again.objects("old").isEmpty, "events of the old log are gone from the store")
        #expect(await again.digest == digest)
        #expect(await again.seq == 8)
        await later.close()
    }
}
