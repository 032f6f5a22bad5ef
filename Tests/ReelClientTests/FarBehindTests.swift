import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Devices that are far behind their partition, and nodes that do not help them.
@Suite(.timeLimit(.minutes(5))) struct FarBehindTests {
    private let name = StreamName("s")!

    /// Returns a device that was live at seq 0 and has lost its node.
    private func lost(_ network: FakeNetwork, _ start: StartPosition) async throws -> (SyncClient, SyncStream) {
        let client = try network.client()
        let stream = try await client.open("s", from: start)
        try await stream.publish(.insert("m", id: "0")).outcome()
        try await network.on { $0.kill("a") }
        return (client, stream)
    }

    @Test(
        "a device sends nothing before it has folded the head of its subscription",
        arguments: [StartPosition.snapshot, .latest, .beginning]
    )
    func nothingIsSentBefore(
        start: StartPosition
    ) async throws {
        let network = try FakeNetwork()
        let (client, stream) = try await lost(network, start)
        let publication = try await stream.publish(.insert("m", id: "1"))
        try await network.on { network in
            network.skip(5)
            (network.isSilent, network.down, network.subscribes) = (true, [], [])
        }
        try await eventually { (try? await network.on { $0.subscribes.count }) == 1 }
        // A frame that `subscribed` caused arrives within a few more rounds of the loop.
        for _ in 0..<5 { #expect(try await network.on { $0.head } == 5) }
        #expect(await stream.seq == 0)
        try await network.on { network in
            network.isSilent = false
            network.pushAll()
        }
        #expect(try await publication.outcome() == .applied(6))
        await client.close()
    }

    @Test("a device rebases an event when the horizon passes its base, and the fold applies it")
    func rebasesQueuedEvent() async throws {
        let network = try FakeNetwork()
        let (client, stream) = try await lost(network, .beginning)
        let publication = try await stream.publish(.insert("m", id: "mine"))
        let count = Int(Limits.markEvery) * Limits.marks
        try await network.on { [name] network in
            let site = Site(high: 1, low: 1)
            for op in 0..<count {
                network.append(
                    name,
                    SyncEvent.delete("m", id: "0").encoded(base: 0, author: .init(site: site, op: Op(op)))
                )
            }
            network.down = []
        }
        #expect(try await publication.outcome() == .applied(Seq(count) + 1))
        await client.close()
    }

    @Test("a device that learns of a large lag from its subscription takes a delta") func takesDelta()
        async throws
    {
        let network = try FakeNetwork()
        let (client, stream) = try await lost(network, .snapshot)
        try await network.on { network in
            network.skip(Int(StreamSync.deltaFromSeqs))
            network.author(.insert("m", id: "other"))
            (network.down, network.isSilent) = ([], true)
        }
        let publication = try await stream.publish(.insert("m", id: "1"))
        try await eventually { await client.statistics.deltas == 1 }
        try await network.on { network in
            network.isSilent = false
            network.pushAll()
        }
        #expect(try await publication.outcome() == .applied(StreamSync.deltaFromSeqs + 2))
        await client.close()
    }

    @Test("an insert that was made long ago gets a new base before the horizon can pass it")
    func oldInserts() async throws {
        let network = try FakeNetwork()
        let (client, stream) = try await lost(network, .snapshot)
        var inserts: [PublishHandle] = []
        for id in 0..<5 { inserts.append(try await stream.publish(.insert("m", id: "own-\(id)"))) }
        try await network.on { network in
            // The horizon passes the bases of the inserts within the own events that follow.
            let count = Limits.markEvery * Int64(Limits.marks) - 3
            for number in 0..<count - network.fold(StreamName("s")!).consumed {
                network.author(.update("m", id: "0", ["a": .integer(number)]))
            }
            network.down = []
        }
        for insert in inserts {
            guard case .applied = try await insert.outcome() else { throw Wrong() }
        }
        let horizon = try await network.on { $0.fold(StreamName("s")!).horizon }
        #expect(horizon >= 0, "the horizon has not risen")
        await client.close()
    }

    @Test("a small delta names the objects that it changes, and a large one does not", arguments: [1, 1_500])
    func deltaNamesObjects(inserted: Int) async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        try await network.on { network in for id in 0..<10 { network.author(.insert("m", id: "\(id)", ["a": 1])) } }
        let first = try network.client(store: .file(path))
        try await first.open("s").waitUntil(seq: 9)
        await first.close()
        try await network.on { network in
            network.author(.update("m", id: "3", ["a": 2]))
            network.author(.delete("m", id: "5"))
            for id in 0..<inserted { network.author(.insert("m", id: "new-\(id)")) }
            network.down = ["a"]
        }
        let client = try network.client(store: .file(path))
        let stream = try await client.open("s")
        let changes = await stream.changes()
        try await network.on { $0.down = [] }
        try await stream.waitUntil(seq: Seq(11 + inserted))
        #expect(await client.statistics.deltas == 1)
        await client.close()
        var all = ObjectChangeBatch(seq: .none)
        for await batch in changes {
            all.objects.formUnion(batch.objects)
            all.isReset = all.isReset || batch.isReset
        }
        #expect(all.isReset == (inserted > 1_000))
        if !all.isReset {
            #expect(all.objects == [ObjectName("m", id: "3"), ObjectName("m", id: "5"), ObjectName("m", id: "new-0")])
        }
    }

    @Test("a device with a large lag and nothing new takes only the digest") func takesDigest() async throws {
        let network = try FakeNetwork()
        let (client, stream) = try await lost(network, .snapshot)
        try await network.on { network in
            network.skip(Int(StreamSync.deltaFromSeqs))
            (network.down, network.isSilent) = ([], true)
        }
        let publication = try await stream.publish(.insert("m", id: "1"))
        try await eventually { await client.statistics.digests == 1 }
        try await network.on { network in
            network.isSilent = false
            network.pushAll()
        }
        #expect(try await publication.outcome() == .applied(StreamSync.deltaFromSeqs + 1))
        #expect(await client.statistics.deltas == 0)
        await client.close()
    }

    @Test(
        "without any snapshot node, a device closes a wide gap with the events",
        arguments: [StartPosition.snapshot, .latest, .beginning]
    )
    func withoutAnySnapshotNode(
        start: StartPosition
    ) async throws {
        let network = try FakeNetwork()
        try await network.on { network in
            network.skip(Int(StreamSync.deltaFromSeqs))
            network.hasSnapshots = false
        }
        let client = try network.client()
        let stream = try await client.open("s", from: start)
        try await stream.publish(.insert("m", id: "0")).outcome()
        try await network.on { network in
            network.kill("a")
            network.skip(Int(StreamSync.deltaFromSeqs))
            network.down = []
        }
        let head = try await network.on { $0.head }
        #expect(try await stream.publish(.insert("m", id: "1")).outcome() == .applied(head + 1))
        await client.close()
    }

    @Test("a device limits its requests to a snapshot node that lags far") func limitsRequests() async throws {
        let network = try FakeNetwork()
        let (client, stream) = try await lost(network, .snapshot)
        try await network.on { network in
            network.skip(3 * Int(StreamSync.deltaFromSeqs))
            (network.folds, network.down, network.isSilent) = ((to: 10, step: 10), [], true)
        }
        let publication = try await stream.publish(.insert("m", id: "1"))
        // The digest is the first one.
        try await eventually { await client.statistics.deltas >= Int64(StreamSync.loadFailuresMax) - 1 }
        try await network.on { network in
            network.isSilent = false
            network.pushAll()
        }
        guard case .applied = try await publication.outcome() else { throw Wrong() }
        let statistics = await client.statistics
        #expect((statistics.digests, statistics.deltas) == (1, Int64(StreamSync.loadFailuresMax) - 1))
        await client.close()
    }

    @Test("a device stops waiting for a node that hangs once another node sends a welcome") func skipsHangingNode()
        async throws
    {
        let network = try FakeNetwork()
        try await network.on { network in
            network.othersHang = true
            network.heldPauses = [StreamSync.answerMs]
        }
        let client = try network.client(nodes: ["a", "b"])
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "0")).outcome()
        #expect(await client.statistics.snapshots == 1)
        await client.close()
    }

    @Test("a device waits only for a limited time for a snapshot that does not come") func aSnapshotThatDoes()
        async throws
    {
        let network = try FakeNetwork()
        try await network.on { ($0.hung, $0.haste) = (["a"], 100) }
        let client = try network.client()
        try await client.open("s").publish(.insert("m", id: "0")).outcome()
        #expect(await client.statistics.snapshots == 0)
        await client.close()
    }

    @Test("a device ignores catch-up failures from before the welcome") func ignoresEarlyFailures() async throws {
        let network = try FakeNetwork()
        let (other, _) = try await network.author(of: 5, on: "b")
        try await network.on { ($0.hasSnapshots, $0.heldPauses) = (false, [SyncClient.tokenMs]) }
        let (gate, opening) = AsyncStream.makeStream(of: Never.self)
        let client = try network.client(renewToken: {
            for await _ in gate {}
            return "token"
        })
        let stream = try await client.open("s")
        try await eventually { (try? await network.on { $0.requests.count }) ?? 0 >= StreamSync.loadFailuresMax }
        try await network.on { $0.hasSnapshots = true }
        opening.finish()
        try await stream.waitUntil(seq: 4)
        #expect(await client.statistics.snapshots == 1)
        #expect(await client.statistics.eventsReceived == 0, "no history came")
        await client.close()
        await other.close()
    }
}
