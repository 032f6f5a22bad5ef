import ReelCore
import ReelSQLite
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Damaged rows of objects, and answers of nodes that must not be taken for errors of the store.
@Suite(.timeLimit(.minutes(5))) struct DamagedRowTests {
    private static let victim = "victim"

    @Test("an event that changes a damaged object makes the device read the state again")
    func foldedEvent() async throws {
        try await withDamage { network, client, stream in
            try await network.on { network in
                network.author(.update("m", id: Self.victim, ["n": 2]))
                network.pushAll()
            }
            try await stream.waitUntil(seq: 100)
            try await expectHealed(network, client, stream, ["n": 2])
        }
    }

    @Test("a delta that changes a damaged object makes the device read the state again")
    func delta() async throws {
        let change = [SyncEvent.update("m", id: Self.victim, ["n": 3])]
        try await withDamage(missed: change) { network, client, stream in
            try await stream.waitUntil(seq: await network.seq())
            try await expectHealed(network, client, stream, ["n": 3])
            let requests = try await network.on { $0.requests }
            #expect(requests.contains { $0.contains("/delta") } && requests.count { $0.hasSuffix("/snapshot") } == 2)
        }
    }

    @Test("an own event that changes a damaged object is not lost", arguments: [false, true])
    func ownEvent(isGuarded: Bool) async throws {
        try await withDamage { network, client, stream in
            let change = SyncChange.update("m", id: Self.victim, ["n": 4])
            let publication = try await stream.publish(SyncEvent(isGuarded ? change.guarded(["n": 0]) : change))
            #expect(try await publication.outcome() == .applied(100))
            try await expectHealed(network, client, stream, ["n": 4])
        }
    }

    @Test("a damaged row below a delta, which only a commit reads, makes the device read the state again")
    func belowDelta() async throws {
        try await withDamage(isBelowDelta: true) { network, client, stream in
            #expect(try stream.object("m", id: Self.victim)?["n"] == 8)
            await client.setCacheBytes(1)
            try await network.on { network in
                network.author(
                    .update("m", id: Self.victim, ["n": 9, "text": .string(String(repeating: "x", count: 5_000))])
                )
                network.pushAll()
            }
            let publication = try await stream.publish(.insert("m", id: "own"))
            try await publication.outcome()
            try await expectHealed(network, client, stream, ["n": 9])
        }
    }

    @Test("own events stay visible when a commit finds a damaged row and no node sends the state")
    func ownEventAfterDamage() async throws {
        try await withDamage(isBelowDelta: true) { network, client, stream in
            try await network.on { network in
                network.nack = ReelError(.overloaded, "busy", retryMs: 3_600_000)
                network.hung = ["a"]
            }
            try await stream.publish(.insert("m", id: "own"))
            try await eventually { stream.status.problems.contains { $0.code == .overloaded } }
            await client.setCacheBytes(1)
            try await network.on { network in
                let text = JSONValue.string(String(repeating: "x", count: 5_000))
                network.author(.update("m", id: Self.victim, ["n": 9, "text": text]))
                network.pushAll()
            }
            // These calls end the turn of a stream that has changed. Nothing else happens before the check.
            try await eventually { await stream.seq == -1 }
            #expect(await stream.seq == -1)
            #expect(try stream.object("m", id: "own")?.isPending == true)
            try await network.on { network in (network.nack, network.hung) = (nil, []) }
        }
    }

    @Test("a read of two streams drops the state of the damaged one only")
    func twoStreams() async throws {
        try await withDamage(missed: [.insert("m", id: "later")], isOffline: true) { network, client, stream in
            let whole = try await client.open("whole")
            let before = await whole.seq
            try #require(before >= 0)
            let error = #expect(throws: ReelError.self) {
                try client.read([stream, whole]) { streams in
                    for stream in streams.reversed() { _ = try stream.objects("m") }
                }
            }
            #expect(error?.code == .storeDamaged)
            try await eventually { await stream.seq == -1 }
            #expect(await whole.seq == before)
            #expect(try whole.objects("m").count == 3)
        }
    }

    @Test("a node's answer with an error code of the device's store does not stop the client")
    func storeCodeOfANode() async throws {
        let network = try FakeNetwork()
        try await network.on { network in
            for id in 0..<3 { network.author(.insert("m", id: "\(id)")) }
            // A subscription would end the problem.
            network.refusal = ReelError(.overloaded, "busy", retryMs: 10)
            network.answers["a"] = { target, _ in
                target.hasSuffix("/snapshot") ? (500, Array(#"{"code":"store_full","detail":"no room"}"#.utf8)) : nil
            }
        }
        let client = try network.client()
        let stream = try await client.open("s")
        try await eventually { client.status.problems.contains { $0.code == .internal } }
        try await stream.publish(.insert("m", id: "own"))
        try await network.on { network in
            network.answers = [:]
            network.refusal = nil
        }
        try await eventually { await stream.pendingCount == 0 }
        #expect(try stream.objects("m").count == 4)
        await client.close()
    }

    @Test("a state of another partition is not taken")
    func otherPartition() async throws {
        let network = try FakeNetwork()
        try await network.on { network in
            for id in 0..<3 { network.author(.insert("m", id: "\(id)")) }
            // A subscription would end the problem.
            network.refusal = ReelError(.overloaded, "busy", retryMs: 10)
            network.answers["a"] = { target, body in
                guard target.hasSuffix("/snapshot") else { return nil }
                let text = String(decoding: body, as: UTF8.self)
                return (200, Array(text.replacing("\"partition\":0", with: "\"partition\":5").utf8))
            }
        }
        let client = try network.client()
        let stream = try await client.open("s")
        try await eventually { client.status.problems.contains { $0.message.contains("partition 5") } }
        try await network.on { $0.refusal = nil }
        // The events of the log contain the same state.
        try await stream.waitUntil(seq: 2)
        #expect(try stream.objects("m").count == 3)
        await client.close()
    }

    // MARK: The damage

    /// Opens a client whose store has a damaged row of the object `victim` in the stream `s`. The stream has 100
    /// objects, at the seqs 0 to 99.
    /// - Parameters:
    ///   - missed: events that are appended while the device is closed.
    ///   - isOffline: true if no node answers the client.
    ///   - isBelowDelta: true if a delta that is stored above the row has changed the object.
    private func withDamage(
        missed: [SyncEvent] = [],
        isOffline: Bool = false,
        isBelowDelta: Bool = false,
        _ body: (FakeNetwork, SyncClient, SyncStream) async throws -> Void
    ) async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        try await network.on { network in
            network.author(.insert("m", id: Self.victim, ["n": 1]))
            for id in 1..<100 { network.author(.insert("m", id: "\(id)", ["n": 1])) }
        }
        let first = try network.client(store: .file(path))
        try await first.open("s").waitUntil(seq: 99)
        if isOffline {
            let whole = try await first.open("whole", from: .beginning)
            for id in 0..<3 { try await whole.publish(.insert("m", id: "\(id)")).outcome() }
        }
        await first.close()
        if isBelowDelta {
            try await network.on { network in
                network.author(.update("m", id: Self.victim, ["n": 8]))
                // The rows of a large delta are written as they arrive, in the order of their ids.
                for id in 0..<1_100 { network.author(.insert("m", id: "w\(id)")) }
                network.skip(Int(StreamSync.deltaFromSeqs))
                // The pause before the rows of a delta are moved down.
                network.heldPauses = [10]
            }
            let second = try network.client(store: .file(path))
            let stream = try await second.open("s")
            try await eventually { await second.statistics.deltas == 1 }
            try await eventually { await stream.seq > 100 }
            await second.close()
        }
        do {
            let connection = try Connection(path: path, mode: .readWrite, busyMs: 5_000)
            try connection.execute(
                """
                UPDATE pair SET \(StoredStateTests.Damage.flipped.change)
                WHERE key = (SELECT min(key) FROM pair
                    WHERE substr(key, 1, 1) = CAST('o' AS BLOB) AND instr(key, CAST('\(Self.victim)' AS BLOB)) > 0)
                """
            )
            #expect(connection.changes == 1)
            let rows = "substr(key, 1, 1) = CAST('o' AS BLOB) AND instr(key, CAST('\(Self.victim)' AS BLOB)) > 0"
            let count = try connection.integer("SELECT count(*) FROM pair WHERE \(rows)")
            #expect(count == (isBelowDelta ? 2 : 1), "rows of the object")
        }
        try await network.on { network in
            for event in missed { network.author(event) }
            if !missed.isEmpty { network.skip(Int(StreamSync.deltaFromSeqs)) }
            if isOffline { network.down = ["a"] }
        }
        let client = try network.client(store: .file(path))
        try await body(network, client, try await client.open("s"))
        await client.close()
    }

    private func expectHealed(
        _ network: FakeNetwork,
        _ client: SyncClient,
        _ stream: SyncStream,
        _ fields: [String: JSONValue]
    ) async throws {
        try await eventually { try await network.on { $0.requests.count { $0.hasSuffix("/snapshot") } } == 2 }
        try await eventually { try stream.confirmed.object("m", id: Self.victim)?["n"] == fields["n"] }
        #expect(try stream.objects("m").count >= 100)
        let expected = try await network.on { network in
            var fold = network.fold(StreamName("s")!)
            return fold.digest()
        }
        try await eventually { await stream.digest() == expected }
    }
}

extension SyncClient {
    fileprivate func setCacheBytes(_ bytes: Int) { cacheBytes = bytes }
}

extension FakeNetwork {
    fileprivate func seq() async throws -> Seq { try await on { $0.head } }
}
