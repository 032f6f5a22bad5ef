import ReelBase
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// A device between nodes of a new epoch and nodes that are still at the old epoch. The fold applies each event once.
@Suite(.timeLimit(.minutes(5))) struct EpochTests {
    private let name = StreamName("s")!

    private func add(_ stream: SyncStream) async throws -> PublishHandle {
        try await stream.publish(.update("m", id: "0", operations: ["n": .increment(1)]))
    }

    /// Returns the number of `add` calls that the log has.
    private func count(_ network: FakeNetwork) async throws -> Double? {
        let value = try await network.on { [name] network -> JSONValue? in
            let object = network.fold(name).object(model: "m", id: "0")
            return object.map {
                SyncObject($0, readAt: ReadPosition(epoch: nil, seq: 0, withdrawals: .max))["n"] ?? .null
            }
        }
        guard case .number(let number)? = value else { return nil }
        return number
    }

    @Test(
        "a device does not resend events that the new epoch has consumed after it meets a lagging node",
        arguments: [false, true]
    )
    func keepsConsumedEvents(
        isStartedAgain: Bool
    ) async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        var client = try network.client(nodes: ["new", "old"], store: .file(path))
        var stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "0", ["n": 0])).outcome()
        try await network.on { $0.down = ["old"] }
        try await network.on { $0.goOver(to: Epoch(2), lagging: ["old"]) }
        try await add(stream).outcome()
        // The new log consumes one more event. The device hears only that the event is durable.
        try await network.on { $0.isSilent = true }
        _ = try await add(stream).acked()
        if isStartedAgain { await client.close() }
        try await network.on { network in
            network.kill("new")
            network.down = ["new"]
            network.greeted = []
        }
        if isStartedAgain {
            client = try network.client(nodes: ["new", "old"], store: .file(path))
            stream = try await client.open("s")
        }
        // The device does not stay with the lagging node.
        try await eventually { (try? await network.on { $0.greeted.count }) ?? 0 > 1 }
        try await network.on { network in
            network.isSilent = false
            network.down = []
        }
        try await eventually { await stream.pendingCount == 0 }
        let seen = try stream.object("m", id: "0")?["n"]
        #expect(try await count(network) == 2 && seen == .number(2))
        #expect(await client.connectedNode == "new")
        // Once the lagging node has moved to the new epoch, the device uses it like the other node.
        try await network.on { network in
            network.kill("new")
            network.catchUp()
        }
        try await add(stream).outcome()
        #expect(try await count(network) == 3)
        #expect(await client.connectedNode == "old")
        await client.close()
    }

    @Test("a caller that waits for a seq gets epoch_changed when the log ends") func seqWaitEnds() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "0", ["n": 1])).outcome()
        let waiting = Task { try await stream.waitUntil(seq: 100) }
        while try await client.waiters("s") == 0 { await Task.yield() }
        try await network.on { $0.goOver(to: Epoch(2), lagging: []) }
        let error = await #expect(throws: ReelError.self) { try await waiting.value }
        #expect(error?.code == .epochChanged)
        await client.close()
    }

    @Test("a client refuses a splice with a base from an earlier epoch") func refusesOldEpochBase() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "0", ["text": "old", "n": 1])).outcome()
        let read = try #require(try stream.object("m", id: "0"))
        #expect((read.readAt.epoch, read.readAt.seq) == (await stream.epoch, 0))
        try await network.on { $0.goOver(to: Epoch(2), lagging: []) }
        try await add(stream).outcome()
        #expect(await stream.epoch == Epoch(2))
        let splice = SyncEvent.update(
            "m",
            id: "0",
            operations: ["text": .splice([TextSplice(at: 3, removing: 0, inserting: "er")])]
        )
        let error = await #expect(throws: ReelError.self) { try await stream.publish(splice, base: read.readAt) }
        #expect(error?.code == .epochChanged)
        // The client still accepts an event that depends on no base, and an event on an object that is read again.
        let plain = try await stream.publish(.update("m", id: "0", ["n": 5]), base: read.readAt)
        guard case .applied = try await plain.outcome() else { return #expect(Bool(false)) }
        try await stream.publish(splice, base: stream.object("m", id: "0")?.readAt).outcome()
        #expect(try stream.object("m", id: "0")?["text"] == "older")
        await client.close()
    }

    @Test("a device that has met another deployment reports why it avoids its own nodes") func reportsOldNodes()
        async throws
    {
        let (own, other) = (try FakeNetwork(), try FakeNetwork())
        let path = temporaryPath()
        defer { removeStore(path) }
        try await other.on { ($0.number, $0.epoch) = (7, Epoch(9)) }
        var client = try other.client(store: .file(path))
        try await client.open("s").publish(.insert("m", id: "0")).outcome()
        await client.close()

        client = try own.client(nodes: ["a", "b"], store: .file(path))
        let notices = await client.notices()
        try await client.open("s").publish(.insert("m", id: "1"))
        var met: Set<String> = []
        for await notice in notices {
            guard case .nodeBehind(let node, number: 0, expected: 7) = notice else { continue }
            met.insert(node)
            if met == ["a", "b"] { break }
        }
        #expect(await client.connectedNode == nil)
        // The device accepts its own nodes once they have a later log number.
        try await own.on { $0.number = 8 }
        try await eventually { await client.connectedNode != nil }
        await client.close()
    }

    @Test("a stream that is opened later moves to the new epoch on the same connection") func aStreamThatIs()
        async throws
    {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        var client = try network.client(store: .file(path))
        for name in ["s", "t"] {
            let stream = try await client.open(name)
            try await stream.publish(.insert("m", id: "0", ["n": 0])).outcome()
        }
        await client.close()
        try await network.on { $0.goOver(to: Epoch(2), lagging: []) }
        client = try network.client(store: .file(path))
        try await client.open("s").publish(.insert("m", id: "1")).outcome()
        let later = try await client.open("t")
        try await later.publish(.insert("m", id: "1")).outcome()
        #expect(await later.epoch == Epoch(2))
        #expect(await client.statistics.reconnects == 0)
        await client.close()
    }

    @Test("the fold applies each event once when a device moves between nodes of different epochs")
    func aDeviceThatHops() async throws {
        try await Seeds.runAsync(5) { seed in
            let network = try FakeNetwork(seed: seed)
            let nodes = ["a", "b", "c"]
            let client = try network.client(nodes: nodes, seed: seed)
            let stream = try await client.open("s")
            try await stream.publish(.insert("m", id: "0", ["n": 0])).outcome()
            var random = SeededGenerator(seed: seed)
            var added = 0
            try await network.on { ($0.breaksPercent, $0.haste) = (20, 50) }
            for epoch in UInt64(2)...4 {
                let late = Set(nodes.filter { _ in random.next().isMultiple(of: 2) }.prefix(2))
                try await network.on { $0.goOver(to: Epoch(epoch), lagging: late) }
                for _ in 0..<12 {
                    let node = nodes[Int(random.next() % 3)]
                    try await network.on { network in
                        network.down = [node]
                        network.kill(node)
                    }
                    for _ in 0..<Int(random.next() % 3) {
                        _ = try await add(stream)
                        added += 1
                    }
                    // Waits for a random number of rounds of the network's loop.
                    for _ in 0..<random.next() % 64 { try await network.on { _ in } }
                }
                try await network.on { network in
                    network.down = []
                    network.catchUp()
                }
                try await eventually { await stream.pendingCount == 0 }
                let (inLog, seen) = (try await count(network), try stream.object("m", id: "0")?["n"])
                #expect(inLog == Double(added) && seen == .number(Double(added)), "seed \(seed), epoch \(epoch)")
            }
            await client.close()
        }
    }
}

extension SyncClient {
    /// The number of calls that wait for a position of a stream.
    fileprivate func waiters(_ name: String) throws -> Int {
        opened[try #require(StreamName(name))]?.waiters.count ?? 0
    }
}
