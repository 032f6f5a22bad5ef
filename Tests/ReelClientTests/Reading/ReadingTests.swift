import Foundation
import ReelCore
import ReelSQLite
import Synchronization
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Reads that run beside writes, see one moment, and use the store and the memory.
@Suite(.timeLimit(.minutes(5))) struct ReadingTests {
    private static let text = String(repeating: "a text of some length ", count: 8)

    /// Returns a client with a small cache whose stream holds `count` objects of a node.
    private func client(_ network: FakeNetwork, _ path: String, objects count: Int) async throws -> SyncClient {
        try await network.on { network in
            for id in 0..<count { network.author(.insert("m", id: "\(id)", ["text": .string(Self.text), "n": 0])) }
        }
        return try SyncClient(nodes: ["a"], store: .file(path), transport: network, cacheBytes: 1 << 20)
    }

    @Test("a read sees two objects that a batch changes at one moment, on any thread")
    func oneMoment() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try network.client(store: .file(path))
        let stream = try await client.open("s")
        try await stream.publish(.batch([.insert("m", id: "x", ["n": 100]), .insert("m", id: "y", ["n": 0])]))
        let isOver = Mutex(false)
        let reader = Task.detached {
            var (reads, sums) = (0, Set<Double>())
            while !isOver.withLock({ $0 }) {
                let sum = try stream.read { snapshot in
                    let x = try snapshot.object("m", id: "x")?["n"]?.number ?? 0
                    Thread.sleep(forTimeInterval: 0.0001)
                    return try x + (snapshot.objects("m").last?["n"]?.number ?? 0)
                }
                sums.insert(sum)
                reads += 1
                await Task.yield()
            }
            return (reads, sums)
        }
        for _ in 0..<200 {
            try await stream.publish(
                .batch([
                    .update("m", id: "x", operations: ["n": .increment(-1)]),
                    .update("m", id: "y", operations: ["n": .increment(1)]),
                ])
            )
        }
        try await eventually { await stream.pendingCount == 0 }
        isOver.withLock { $0 = true }
        let (reads, sums) = try await reader.value
        #expect(reads > 0 && sums == [100])
        await client.close()
    }

    @Test("a read of two streams never shows a later event without an earlier one")
    func momentOfTwoStreams() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let (first, second) = (try await client.open("a"), try await client.open("b"))
        try await first.publish(.insert("m", id: "x", ["n": 0]))
        try await second.publish(.insert("m", id: "x", ["n": 0]))
        let isOver = Mutex(false)
        let reader = Task.detached {
            while !isOver.withLock({ $0 }) {
                let (a, b) = try client.read([first, second]) { streams in
                    let b = try streams[1].object("m", id: "x")?["n"]?.number ?? 0
                    return (try streams[0].object("m", id: "x")?["n"]?.number ?? 0, b)
                }
                guard a == b || a == b + 1 else { throw Wrong() }
                await Task.yield()
            }
        }
        for _ in 0..<200 {
            for stream in [first, second] {
                try await stream.publish(.update("m", id: "x", operations: ["n": .increment(1)]))
            }
        }
        isOver.withLock { $0 = true }
        try await reader.value
        await client.close()
    }

    @Test("a stream that is larger than the cache has the state of the nodes, and stays within the cache's limit")
    func largerThanTheCache() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try await client(network, path, objects: 6_000)
        let stream = try await client.open("s")
        try await stream.waitUntil(seq: 5_999)
        #expect(await client.cachedBytes < 1 << 20)
        #expect(try stream.objects("m").count == 6_000)
        #expect(try stream.object("m", id: "4711")?["text"] == .string(Self.text))
        // Each event of another device names another object.
        try await network.on { network in
            for id in 0..<6_000 where id % 2 == 0 {
                network.author(.update("m", id: "\(id)", ["n": .number(Double(id))]))
            }
            for id in 0..<50 { network.author(.delete("m", id: "\(id * 7)")) }
            network.pushAll()
        }
        let head = try await network.on { $0.head }
        try await stream.waitUntil(seq: head)
        try await eventually { await client.cachedBytes < 1 << 20 }
        let expected = try await network.on { network in
            var fold = network.fold(StreamName("s")!)
            return fold.digest()
        }
        #expect(await stream.digest() == expected)
        #expect(try stream.objects("m").count == 5_950)
        #expect(try stream.object("m", id: "4712")?["n"] == 4_712)
        #expect(try stream.object("m", id: "7") == nil)
        await client.close()
        let again = try SyncClient(nodes: [], store: .file(path), transport: network)
        let reopened = try await again.open("s")
        #expect(await reopened.digest() == expected)
        #expect(await again.cachedBytes < 1 << 20, "nothing is read to open it")
        #expect(try reopened.objects("m").count == 5_950)
        await again.close()
    }

    @Test("a device writes a large delta to a separate generation, and then joins it with the state")
    func largeDelta() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let first = try await client(network, path, objects: 4_000)
        try await first.open("s").waitUntil(seq: 3_999)
        await first.close()
        try await network.on { network in
            for id in 0..<3_500 { network.author(.update("m", id: "\(id)", ["n": 1])) }
            for id in 3_900..<4_000 { network.author(.delete("m", id: "\(id)")) }
            for id in 4_000..<4_010 { network.author(.insert("m", id: "\(id)")) }
        }
        let client = try network.client(store: .file(path))
        let stream = try await client.open("s")
        let head = try await network.on { $0.head }
        try await stream.waitUntil(seq: head)
        let requests = try await network.on { $0.requests }
        #expect(await client.statistics.deltas >= 1, "\(requests)")
        for _ in 0..<20 {
            // Some reads see two generations, and later reads see one.
            #expect(try stream.objects("m").count == 3_910)
            #expect(try stream.object("m", id: "17")?["n"] == 1 && stream.object("m", id: "3917") == nil)
            await Task.yield()
        }
        try await eventually { await client.layers(of: "s") == 1 }
        #expect(try stream.objects("m").count == 3_910)
        let expected = try await network.on { network in
            var fold = network.fold(StreamName("s")!)
            return fold.digest()
        }
        #expect(await stream.digest() == expected)
        await client.close()
        try expectOneGeneration(path, rows: 4_010)
    }

    @Test("a device shows objects of an arriving first snapshot as incomplete, and a cut snapshot leaves nothing")
    func incomplete() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let shown = Mutex<(isComplete: Bool, count: Int, seq: Seq)?>(nil)
        let client = try await client(network, path, objects: 6_000)
        try await network.on { network in
            network.cuts = [900_000]
            network.cutAnswer = { receive in
                let opening = StreamOpening(name: StreamName("s")!, number: 0)
                let stream = SyncStream(client: client, opening: opening)
                let read = try? stream.read { ($0.isComplete, try $0.objects("m").count, $0.seq) }
                shown.withLock { $0 = read }
                receive(.failed("reset"))
            }
        }
        let stream = try await client.open("s")
        try await stream.waitUntil(seq: 5_999)
        let partly = try #require(shown.withLock { $0 })
        #expect(!partly.isComplete && (1_000..<6_000).contains(partly.count) && partly.seq == -1)
        let whole = try stream.read { ($0.isComplete, try $0.objects("m").count) }
        #expect(whole == (true, 6_000))
        await client.close()
        try expectOneGeneration(path, rows: 6_000)
    }

    @Test("a replaced state stays readable until the next state is installed, and then its rows are removed")
    func replaced() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try await client(network, path, objects: 2_500)
        let stream = try await client.open("s")
        try await stream.waitUntil(seq: 2_499)
        try await network.on { network in
            network.number = 1
            network.beginEpoch(Epoch(2))
            network.authored = 0
            for id in 0..<2_000 { network.author(.insert("m", id: "new \(id)")) }
        }
        try await eventually {
            let count = try stream.objects("m").count
            #expect(count == 2_500 || count == 2_000, "found \(count)")
            return count == 2_000
        }
        try await eventually { await client.unusedGenerations == 0 }
        await client.close()
        try expectOneGeneration(path, rows: 2_000)
    }

    @Test("reading works in synchronous code, and throws once the client is closed")
    func synchronous() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "1", ["a": 1]))
        func title() throws -> JSONValue? { try stream.object("m", id: "1")?["a"] }
        #expect(try title() == 1)
        await client.close()
        let error = #expect(throws: ReelError.self) { try title() }
        #expect(error?.code == .closed)
    }

    private func expectOneGeneration(_ path: String, rows: Int64) throws {
        let connection = try Connection(path: path, mode: .readWrite, busyMs: 5_000)
        let objects = "FROM pair WHERE substr(key, 1, 1) = CAST('o' AS BLOB)"
        #expect(try connection.integer("SELECT count(DISTINCT substr(key, 2, 8)) \(objects)") == 1)
        #expect(try connection.integer("SELECT count(*) \(objects)") == rows)
    }
}

extension SyncClient {
    fileprivate var cachedBytes: Int { opened.values.reduce(0) { $0 + ($1.view?.fold.cachedBytes ?? 0) } }
    fileprivate var unusedGenerations: Int { store?.unusedGenerations.count ?? 0 }

    fileprivate func layers(of name: String) -> Int {
        StreamName(name).flatMap { opened[$0]?.fold?.storedObjects?.layers.count } ?? 0
    }
}
