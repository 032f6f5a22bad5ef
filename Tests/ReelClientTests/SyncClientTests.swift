import Foundation
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

@Suite(.timeLimit(.minutes(5))) struct SyncClientTests {
    @Test("a device lists the streams in its store") func aDeviceListsThe() async throws {
        let network = try FakeNetwork()
        try await network.on { $0.down = ["a"] }
        let path = temporaryPath()
        defer { removeStore(path) }
        let held = [LocalStream(id: "note", pendingCount: 0), LocalStream(id: "todo", pendingCount: 2)]
        for store in [SyncClient.Store.file(path), .memory] {
            let client = try network.client(store: store)
            #expect(try await client.streams().isEmpty)
            let todo = try await client.open("todo")
            for id in 0..<2 { try await todo.publish(.insert("task", id: "\(id)")) }
            try await client.open("note")
            #expect(try await client.streams() == held)
            await client.close()
            await #expect(throws: ReelError.closed) { try await client.streams() }
        }
        let next = try network.client(store: .file(path))
        #expect(try await next.streams() == held, "none is open")
        await next.close()
    }

    @Test("every device shows an event that one device publishes") func showsOthersEvents() async throws {
        let network = try FakeNetwork()
        let (one, two) = (try network.client(seed: 1), try network.client(seed: 2))
        let (mine, theirs) = (try await one.open("todo"), try await two.open("todo"))
        let publication = try await mine.publish(.insert("task", id: "1", ["title": "Milk", "n": 2]))
        guard case .applied(let seq) = try await publication.outcome() else { throw Wrong() }
        #expect(try await publication.acked() == seq)
        #expect("\(publication)" == "\(publication.event) applied(\(seq))")
        try await theirs.waitUntil(seq: seq)
        #expect(try theirs.object("task", id: "1")?["title"] == "Milk")
        #expect(try theirs.object("task", id: "1")?.fields["n"]?.seq == seq)
        let digest = await mine.digest()
        #expect(await theirs.digest() == digest)
        #expect(await mine.pendingCount == 0)
        await one.close()
        await two.close()
    }

    @Test("a device that missed a range shows live events at once and fetches the range from another node")
    func aDeviceThatMissed() async throws {
        let network = try FakeNetwork()
        let writer = try network.client(nodes: ["a"], seed: 1)
        let source = try await writer.open("s", from: .beginning)
        let path = temporaryPath()
        defer { removeStore(path) }
        for id in 0..<10 { try await source.publish(.insert("m", id: "\(id)")).outcome() }
        let before = try network.client(nodes: ["a"], store: .file(path), seed: 2)
        try await before.open("s", from: .beginning).waitUntil(seq: 9)
        await before.close()
        for id in 10..<15 { try await source.publish(.insert("m", id: "\(id)")).outcome() }

        // The device is back. A fetch answers later than the live event arrives.
        let after = try network.client(nodes: ["a", "b"], store: .file(path), gaps: .peers, seed: 2)
        try await network.on { $0.down = ["a", "b"] }
        let reader = try await after.open("s", from: .latest)
        #expect(await reader.coverage() == SeqRanges([0...9]), "what was stored is there at once")
        try await network.on { $0.down = [] }
        try await eventually { await after.connectedNode != nil }
        try await source.publish(.insert("m", id: "15")).outcome()
        try await reader.waitUntil(seq: 15)
        #expect(await reader.gaps().isEmpty)
        #expect(await reader.digest() == source.digest())
        await writer.close()
        await after.close()
    }

    @Test("a device computes the missing seqs by subtraction and fetches them") func missingSeqsAreFound() async throws
    {
        for gaps in [SyncClient.GapSource.connection, .peers] {
            let network = try FakeNetwork()
            let writer = try network.client(nodes: ["a"], seed: 1)
            let source = try await writer.open("s", from: .beginning)
            for id in 0..<20 {
                try await source.publish(.insert("m", id: "\(id)")).outcome()
                if id % 3 == 0 { try await network.on { $0.skip(2) } }
            }
            let client = try network.client(nodes: ["a", "b"], gaps: gaps, seed: 3)
            let reader = try await client.open("s", from: .latest)
            let head = try await network.on { $0.head }
            try await reader.waitUntil(seq: head)
            #expect(await reader.coverage() == SeqRanges([0...head]))
            #expect(await reader.digest() == source.digest())
            let (fetches, requests, node) = try await (
                network.on { $0.fetches }, network.on { $0.requests }, client.connectedNode
            )
            switch gaps {
            case .connection: #expect(fetches == [[0...head]])
            case .peers:
                #expect(requests.allSatisfy { !$0.hasPrefix("\(node ?? "?") ") }, "it asks the other node")
                #expect(requests.count == 1)
            }
            #expect(await client.statistics.seqsFetched == head + 1)
            await writer.close()
            await client.close()
        }
    }

    @Test("a device sends a fetch without an answer to another node") func aFetchWithoutAn() async throws {
        let network = try FakeNetwork()
        let (writer, source) = try await network.author(of: 5, on: "a")
        try await network.on { $0.dropsFetches = true }
        let client = try network.client(nodes: ["a", "b"], seed: 3)
        let reader = try await client.open("s", from: .latest)
        try await reader.waitUntil(seq: 4)
        #expect(await reader.digest() == source.digest())
        await writer.close()
        await client.close()
    }

    @Test("a device without state begins with a snapshot, and a device with state begins with a delta")
    func aColdDeviceBegins() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let writer = try network.client(seed: 1)
        let source = try await writer.open("s", from: .beginning)
        for round in 0..<5 {
            for id in 0..<20 { try await source.publish(.insert("m", id: "\(id)", ["n": .number(Double(round))])) }
        }
        try await source.publish(.delete("m", id: "0")).outcome()
        let cold = try network.client(store: .file(path), seed: 2)
        let reader = try await cold.open("s")
        let head = await source.seq
        try await reader.waitUntil(seq: head)
        #expect(await reader.digest() == source.digest())
        #expect(await cold.statistics.snapshots == 1)
        #expect(await cold.statistics.eventsReceived == 0, "no history came")
        await cold.close()

        try await source.publish(.insert("m", id: "new")).outcome()
        try await network.on { $0.down = ["a"] }
        let warm = try network.client(store: .file(path), seed: 2)
        let again = try await warm.open("s")
        #expect(await again.seq == head, "what was stored is there at once")
        try await network.on { $0.down = [] }
        try await again.waitUntil(seq: head + 1)
        #expect(await again.digest() == source.digest())
        #expect(await warm.statistics.deltas == 1)
        #expect(await warm.statistics.snapshots == 0)
        await writer.close()
        await warm.close()
    }

    @Test("without any snapshot node, a device reads the stream from its first event") func withoutAnySnapshotNodeThe()
        async throws
    {
        let network = try FakeNetwork()
        try await network.on { $0.hasSnapshots = false }
        let client = try network.client(seed: 2)
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "1")).outcome()
        #expect(try stream.object("m", id: "1") != nil)
        await client.close()
    }

    @Test("a killed node loses no event, and the next node continues") func aKilledNodeLoses() async throws {
        try await Seeds.runAsync(5) { seed in
            let network = try FakeNetwork(seed: seed)
            try await network.on { $0.breaksPercent = 3 }
            let client = try network.client(nodes: ["a", "b"], seed: seed)
            let stream = try await client.open("s", from: .beginning)
            var publications: [PublishHandle] = []
            for id in 0..<150 {
                publications.append(try await stream.publish(.insert("m", id: "\(id)", ["n": .number(Double(id))])))
                if id % 50 == 25, let node = await client.connectedNode {
                    try await network.on { network in
                        network.kill(node)
                        network.down = [node]
                    }
                }
            }
            try await network.on { $0.breaksPercent = 0 }
            var last: Seq = -1
            for publication in publications {
                guard case .applied(let seq) = try await publication.outcome() else { throw Wrong() }
                #expect(seq > last, "seed \(seed): out of order")
                last = seq
            }
            var reference = try await network.on { $0.fold(StreamName("s")!) }
            #expect(reference.consumed == 150, "seed \(seed)")
            #expect(await stream.digest() == reference.digest(), "seed \(seed)")
            #expect(await client.statistics.reconnects > 0)
            await client.close()
        }
    }

    @Test("the queue survives a time without a network") func theQueueSurvivesWithout() async throws {
        let network = try FakeNetwork()
        try await network.on { $0.down = ["a"] }
        let path = temporaryPath()
        defer { removeStore(path) }
        let offline = try network.client(store: .file(path), seed: 1)
        let stream = try await offline.open("s")
        for id in 0..<10 { try await stream.publish(.insert("m", id: "\(id)")) }
        try await stream.publish(.update("m", id: "9", ["a": 1]))
        try await stream.publish(.update("m", id: "9", ["a": 2]))
        await offline.close()
        try await network.on { $0.down = [] }
        let online = try network.client(store: .file(path), seed: 1)
        let again = try await online.open("s")
        try await again.waitUntil(seq: 9)
        try await eventually { await again.pendingCount == 0 }
        #expect(try again.object("m", id: "9")?["a"] == 2)
        #expect(try await network.on { $0.log.count } == 10, "insert and updates were merged")
        await online.close()
        try await network.on { $0.down = ["a"] }
        let later = try network.client(store: .file(path), seed: 1)
        #expect(try await later.open("s").pendingCount == 0, "what was consumed is gone from the store too")
        await later.close()
    }

    @Test("two clients cannot use one store") func twoClientsCannotHave() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let first = try network.client(store: .file(path))
        #expect(throws: ReelError.self) { try network.client(store: .file(path)) }
        await first.close()
    }

    @Test("a device refuses an event that no node would accept at once") func anEventThatNo() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        let bad: [SyncEvent] = [
            .insert("", id: "1"), .insert("m", id: String(repeating: "x", count: 129)), .batch([]),
            .update("m", id: "1", ["a": 1], operations: ["a": .increment(1)]),
            .insert("m", id: "1", ["x": .string(String(repeating: "x", count: 2 << 20))]),
        ]
        for event in bad {
            await #expect(throws: ReelError.self) { try await stream.publish(event) }
        }
        await #expect(throws: ReelError.self) { try await client.open("no such/name") }
        #expect(await stream.pendingCount == 0)
        await client.close()
    }

    @Test("the largest accepted event fits into a frame") func theLargestEventThat() async throws {
        let network = try FakeNetwork()
        // No node is reachable, so the client uses its default limit.
        try await network.on { $0.down = ["a"] }
        let client = try network.client()
        let name = String(repeating: "s", count: 128)
        let stream = try await client.open(name)
        // One object must be smaller than the largest event, so the batch divides the text between two objects.
        func event(_ count: Int) -> SyncEvent {
            let first = min(count, 500 << 10)
            let texts = [first, count - first].map { JSONValue.string(String(repeating: "x", count: $0)) }
            return .batch([.insert("m", id: "1", ["x": texts[0]]), .insert("m", id: "2", ["x": texts[1]])])
        }
        let author = EventID(site: Site(high: .max, low: .max), op: 0)
        let stamp = #""at":0,"#.utf8.count
        let most = await client.eventBytes - stamp - event(0).encoded(base: -1, author: author).count
        let tooLarge = await #expect(throws: ReelError.self) { try await stream.publish(event(most + 1)) }
        #expect(tooLarge?.code == .tooLarge)
        try await stream.publish(event(most))
        let last = EventID(site: author.site, op: largestInteger)
        let publish = ClientFrame.Publish(
            stream: StreamName(name)!,
            epoch: Epoch(.max),
            events: [event(most).encoded(base: largestInteger, author: last)]
        )
        let frame = ClientFrame(.publish(publish), ref: Array("\(Int64.max)".utf8)).encoded()
        #expect(frame.count <= 1 << 20)
        await client.close()
    }

    @Test("changes come in batches, and are merged for a slow reader") func changesComeInBatches() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        let changes = await stream.changes()
        for id in 0..<30 { try await stream.publish(.insert("m", id: "\(id)")).outcome() }
        var iterator = changes.makeAsyncIterator()
        let batch = await iterator.next()
        #expect(batch?.objects.count == 30)
        #expect(batch?.seq == 29)
        try await stream.publish(.delete("m", id: "3")).outcome()
        #expect(await iterator.next()?.objects == [ObjectName("m", id: "3")])
        await client.close()
        #expect(await iterator.next() == nil)
    }

    @Test("a cloned device continues under another site") func clonedDevice() async throws {
        let network = try FakeNetwork()
        let (path, copy) = (temporaryPath(), temporaryPath())
        defer {
            removeStore(path)
            removeStore(copy)
        }
        let original = try network.client(store: .file(path), seed: 1)
        let mine = try await original.open("s", from: .beginning)
        try await mine.publish(.insert("m", id: "1")).outcome()
        await original.close()
        for end in ["", "-wal"] where FileManager.default.fileExists(atPath: path + end) {
            try FileManager.default.copyItem(atPath: path + end, toPath: copy + end)
        }
        // Both devices continue from the same op.
        let first = try network.client(store: .file(path), seed: 1)
        try await first.open("s", from: .beginning).publish(.insert("m", id: "first")).outcome()
        let second = try network.client(store: .file(copy), seed: 1)
        let notices = await second.notices()
        let clone = try await second.open("s", from: .beginning)
        try await clone.publish(.insert("m", id: "second")).outcome()
        #expect(try clone.object("m", id: "first") != nil)
        #expect(try clone.object("m", id: "second") != nil)
        await second.close()
        let isSaid = await notices.contains { if case .newSite = $0 { true } else { false } }
        #expect(isSaid)
        await first.close()
    }

    @Test("a caller that waits gets closed when the client closes") func closeEndsWaits() async throws {
        let network = try FakeNetwork()
        try await network.on { $0.down = ["a"] }
        let client = try network.client()
        let stream = try await client.open("s")
        let publication = try await stream.publish(.insert("m", id: "1"))
        let waits = Task { try await stream.waitUntil(seq: 5) }
        try await eventually { await client.waiterCount > 0 }
        await client.close()
        await #expect(throws: ReelError.closed) { try await waits.value }
        await #expect(throws: ReelError.closed) { try await publication.outcome() }
        await #expect(throws: ReelError.closed) { try await stream.publish(.insert("m", id: "2")) }
    }
}

struct Wrong: Error {}

extension SyncClient {
    fileprivate var waiterCount: Int { opened.values.reduce(0) { $0 + $1.waiters.count } }
}

func temporaryPath() -> String {
    FileManager.default.temporaryDirectory.appendingPathComponent("reel-client-\(UUID().uuidString).db").path
}

func removeStore(_ path: String) {
    for end in ["", "-wal", "-shm", "-journal", "-lock"] { try? FileManager.default.removeItem(atPath: path + end) }
}
