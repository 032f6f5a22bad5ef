import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// A device with many streams of which it holds everything: one request shows what is new, and one frame subscribes.
@Suite(.timeLimit(.minutes(5))) struct ManyStreamsTests {
    private static let count = 20
    private static let names = (0..<count).map { StreamName("s\($0)")! }

    /// A network with an event in each stream, and the store of a device that has read them.
    private func warm(_ change: (FakeNetwork) -> Void = { _ in }) async throws -> (FakeNetwork, String) {
        let network = try FakeNetwork()
        change(network)
        let path = temporaryPath()
        try await network.on { network in
            for (number, name) in Self.names.enumerated() {
                network.append(name, Self.insert(number, op: 0))
            }
        }
        let client = try network.client(store: .file(path))
        for name in Self.names { try await client.open("\(name)").waitUntil(seq: Seq(Self.count) - 1) }
        await client.close()
        try await network.on { network in
            (network.requests, network.subscribes, network.batches) = ([], [], [])
        }
        return (network, path)
    }

    private static func insert(_ id: Int, op: Op) -> [UInt8] {
        SyncEvent.insert("m", id: "\(id)").encoded(
            base: -1,
            author: .init(site: Site(high: 1, low: UInt64(id)), op: op)
        )
    }

    /// Opens all streams in one turn.
    private func open(_ network: FakeNetwork, _ path: String, nodes: [String] = ["a"]) async throws -> SyncClient {
        let client = try network.client(nodes: nodes, store: .file(path))
        try await client.openAll(Self.names)
        return client
    }

    private func areLive(_ client: SyncClient, except others: Set<Int> = []) async -> Bool {
        let names = Self.names.indices.filter { !others.contains($0) }.map { "\(Self.names[$0])" }
        return await client.phases(names).allSatisfy { $0 == .live }
    }

    @Test("one request and one frame are enough for streams with nothing new") func nothingNew() async throws {
        let (network, path) = try await warm()
        defer { removeStore(path) }
        try await network.on { $0.skip(30) }
        let client = try network.client(store: .file(path))
        let changes = try await client.openAll(Self.names)
        let batches = changes.map { changes in Task { await changes.first { _ in true } } }
        try await eventually { await areLive(client) }
        let (requests, frames, after) = try await network.on { network in
            (network.requests, network.batches, network.subscribes.map(\.position))
        }
        #expect(requests == ["a /v1/digests"])
        #expect(frames == [Self.count])
        #expect(after.allSatisfy { $0 == .after(Seq(Self.count) + 29) }, "the seqs of other streams are covered")
        let statistics = await client.statistics
        #expect((statistics.deltas, statistics.snapshots, statistics.digests) == (0, 0, Int64(Self.count)))
        #expect(try await client.open("s3").read { $0.isComplete })
        await client.close()
        for batch in batches { #expect(await batch.value == nil, "no state was replaced") }
        // The seqs are covered after a restart as well.
        let later = try network.client(nodes: [], store: .file(path))
        #expect(await (try later.open("s3")).seq == Seq(Self.count) + 29)
        await later.close()
    }

    @Test("only streams with something new load a delta") func aDigestThatDiffers() async throws {
        let (network, path) = try await warm()
        defer { removeStore(path) }
        try await network.on { $0.append(Self.names[7], Self.insert(7_000, op: 0)) }
        let client = try await open(network, path)
        try await eventually { await areLive(client) }
        #expect(try await client.open("s7").object("m", id: "7000") != nil)
        let requests = try await network.on { $0.requests }
        #expect(requests.count == 2 && requests[1].hasPrefix("a /v1/streams/s7/delta?after=19&"), "\(requests)")
        #expect(try await network.on { $0.batches } == [Self.count - 1])
        await client.close()
    }

    @Test("a stream that is forbidden does not stop the others") func forbiddenInTheMiddle() async throws {
        let (network, path) = try await warm()
        defer { removeStore(path) }
        try await network.on { $0.forbidden = [Self.names[9]] }
        let client = try await open(network, path)
        try await eventually { await areLive(client, except: [9]) }
        try await eventually { await client.phases("s9") == [.failed] }
        let requests = try await network.on { $0.requests }
        #expect(requests.first == "a /v1/digests" && requests.allSatisfy { !$0.contains("/s8/") }, "\(requests)")
        await client.close()
    }

    @Test("a stream that is forbidden in a frame with others does not stop them") func forbiddenInFrame() async throws {
        let (network, path) = try await warm()
        defer { removeStore(path) }
        let client = try await open(network, path)
        try await eventually { await areLive(client) }
        try await network.on { network in
            (network.forbidden, network.batches) = ([Self.names[9]], [])
            for connection in network.connections { connection.end("reset") }
        }
        try await eventually { await client.phases("s9") == [.failed] }
        try await eventually { await areLive(client, except: [9]) }
        #expect(try await network.on { $0.batches } == [Self.count])
        await client.close()
    }

    @Test("a node without digests is asked once, and then for deltas", arguments: [404, 400, 503, 403])
    func aNodeWithoutDigests(status: Int) async throws {
        let (network, path) = try await warm()
        defer { removeStore(path) }
        try await network.on { network in
            network.answers["a"] = { target, _ in target == "/v1/digests" ? (status, Array("{}".utf8)) : nil }
        }
        let client = try await open(network, path)
        try await eventually { await areLive(client) }
        _ = try await client.open("another")
        try await eventually { await client.phases("another") == [.live] }
        let requests = try await network.on { $0.requests }
        #expect(requests.count { $0.hasSuffix("digests") } == 1)
        #expect(requests.count { $0.contains("/delta") } == Self.count)
        #expect(await client.statistics.digests == 0)
        await client.close()
    }

    @Test("a node of an older build gets a frame for each stream", arguments: [nil, 1, 0])
    func anOlderNode(limit: Int?) async throws {
        let (network, path) = try await warm { $0.subscribeStreams = limit }
        defer { removeStore(path) }
        let client = try await open(network, path)
        try await eventually { await areLive(client) }
        #expect(try await network.on { ($0.batches, $0.subscribes.count) } == ([], Self.count))
        await client.close()
    }

    @Test("a frame has as many streams as the node takes") func streamsLimit() async throws {
        let (network, path) = try await warm { $0.subscribeStreams = 7 }
        defer { removeStore(path) }
        let client = try await open(network, path)
        try await eventually { await areLive(client) }
        #expect(try await network.on { $0.batches } == [7, 7, 6])
        await client.close()
    }

    @Test("a frame has as many bytes as the node takes") func bytesLimit() async throws {
        let network = try FakeNetwork()
        (network.frameBytes, network.subscriptionsMax) = (SyncClient.frameBytesMin, 200)
        network.skip()
        let client = try network.client()
        let names = (0..<200).map { StreamName("stream-\($0)")! }
        try await client.openAll(names)
        let texts = names.map(\.description)
        try await eventually { await client.phases(texts).allSatisfy { $0 == .live } }
        try await network.on { network in
            network.batches = []
            for connection in network.connections { connection.end("reset") }
        }
        try await eventually { await client.phases(texts).allSatisfy { $0 == .live } }
        let batches = try await network.on { $0.batches }
        #expect(batches.reduce(0, +) == 200 && batches.count == 3, "\(batches)")
        await client.close()
    }

    /// Entries of a node that is broken or means harm, for the stream `s0`. The device holds seq 19, one consumed event
    /// and the digest `DIGEST`.
    private static let lies = [
        #"{"stream":"s0","partition":0,"seq":3,"consumed":1,"digest":"DIGEST"}"#,
        #"{"stream":"s0","partition":1,"seq":19,"consumed":1,"digest":"DIGEST"}"#,
        #"{"stream":"s0","partition":0,"seq":19,"consumed":2,"digest":"DIGEST"}"#,
        #"{"stream":"s0","partition":0,"seq":9007199254740993,"consumed":1,"digest":"DIGEST"}"#,
        #"{"stream":"s0","partition":0,"seq":-1,"consumed":1,"digest":"DIGEST"}"#,
        #"{"stream":"s0","partition":0,"seq":19,"consumed":1,"digest":"DIGEST","next":"0000000000000002"}"#,
        #"{"stream":"s0","partition":0,"seq":19,"consumed":1,"digest":"zz"}"#,
        #"{"stream":"s0","partition":0,"seq":19,"consumed":1}"#,
        #"{"stream":"s0","error":{}}"#, #"{"stream":"s0","error":7}"#, #"{"stream":"other","partition":0}"#, "7", "",
    ]

    @Test("an answer that contradicts itself or the device proves nothing", arguments: lies)
    func aNodeThatLies(entry: String) async throws {
        let (network, path) = try await warm()
        defer { removeStore(path) }
        try await network.on { network in
            var fold = network.fold(Self.names[0])
            let entry = entry.replacing("DIGEST", with: Hex64.text(fold.digest()))
            network.answers["a"] = { target, _ in
                guard target == "/v1/digests" else { return nil }
                return (200, Array(#"{"epoch":"0000000000000001","streams":[\#(entry)]}"#.utf8))
            }
        }
        let client = try await open(network, path)
        try await eventually { await areLive(client) }
        #expect(await client.statistics.deltas == Int64(Self.count), "all streams have asked for their state")
        #expect(await (try client.open("s0")).seq == Seq(Self.count) - 1)
        await client.close()
    }

    @Test("digests of another log prove nothing") func anotherEpoch() async throws {
        let (network, path) = try await warm()
        defer { removeStore(path) }
        try await network.on { network in
            network.answers["a"] = { target, body in
                guard target == "/v1/digests" else { return nil }
                let text = String(decoding: body, as: UTF8.self)
                return (200, Array(text.replacing("0000000000000001", with: "0000000000000002").utf8))
            }
        }
        let client = try await open(network, path)
        try await eventually { await areLive(client) }
        #expect(await client.statistics.digests == 0)
        await client.close()
    }

    @Test("a node that has not folded everything leaves the rest to the events") func aNodeBehind() async throws {
        let (network, path) = try await warm()
        defer { removeStore(path) }
        try await network.on { $0.folds = (to: 5, step: 0) }
        let client = try await open(network, path)
        try await eventually { await areLive(client) }
        #expect(try await network.on { $0.requests } == ["a /v1/digests"])
        await client.close()
    }

    @Test("after a lost connection the next one is asked again", arguments: [true, false])
    func linkLost(answersLate: Bool) async throws {
        let (network, path) = try await warm()
        defer { removeStore(path) }
        try await network.on { $0.holdsAnswers = true }
        let client = try await open(network, path)
        try await eventually { try await network.on { $0.heldAnswers.count == 1 } }
        try await network.on { network in
            for connection in network.connections { connection.end("reset") }
            if answersLate { network.answerHeld() }
        }
        if !answersLate {
            try await eventually { try await network.on { $0.heldAnswers.count == 2 } }
            try await network.on { $0.answerHeld() }
        }
        try await eventually { await areLive(client) }
        #expect(try await network.on { $0.requests.allSatisfy { $0 == "a /v1/digests" } })
        #expect(await client.statistics.deltas == 0)
        await client.close()
    }

    @Test("a request without an answer is given up, and each stream asks for its state") func noAnswer() async throws {
        let (network, path) = try await warm { $0.haste = 50 }
        defer { removeStore(path) }
        try await network.on { $0.holdsAnswers = true }
        let client = try await open(network, path)
        try await eventually { try await network.on { $0.heldAnswers.count > Self.count } }
        try await network.on { $0.answerHeld() }
        try await eventually { await areLive(client) }
        await client.close()
    }

    @Test("a client that is closed meanwhile sends nothing more") func closed() async throws {
        let (network, path) = try await warm()
        defer { removeStore(path) }
        try await network.on { $0.holdsAnswers = true }
        let client = try await open(network, path)
        try await eventually { try await network.on { $0.heldAnswers.count == 1 } }
        await client.close()
        try await network.on { $0.answerHeld() }
        #expect(try await network.on { $0.subscribes.isEmpty })
    }

    @Test("a stream that stops before its subscribe was sent does not stay subscribed") func order() async throws {
        let (network, path) = try await warm { $0.subscriptionsMax = 2 }
        defer { removeStore(path) }
        try await network.on { $0.forbidden = [Self.names[0]] }
        let client = try await open(network, path)
        try await eventually { await client.phases("s0", "s1", "s2", "s3") == [.failed, .live, .live, .polled] }
        await client.close()
    }
}

/// The collection of streams for one request.
@Suite struct DigestQueueTests {
    private let streams = (0..<1_200).map { StreamName("s\($0)")! }

    @Test("a request waits for a quiet moment, but not for long") func waits() {
        var queue = DigestQueue()
        #expect(queue.dueMs == nil)
        for number in 0..<40 { queue.add(streams[number], nowMs: Int64(number) * 4) }
        #expect(queue.dueMs == 100, "the first stream has waited long enough")
        var quiet = DigestQueue()
        quiet.add(streams[0], nowMs: 10)
        quiet.add(streams[1], nowMs: 13)
        #expect(quiet.dueMs == 33)
        var full = DigestQueue()
        for stream in streams { full.add(stream, nowMs: 7) }
        #expect(full.dueMs == 7)
        #expect(full.begin(nowMs: 7) == Array(streams.prefix(1_000)))
        #expect(full.dueMs == nil, "a request is running")
        #expect(full.end() == Set(streams.prefix(1_000)))
        #expect(full.dueMs == 27)
        #expect(full.begin(nowMs: 27) == Array(streams.suffix(200)))
    }

    @Test("streams that have waited for the connection are asked for at once") func connected() {
        var queue = DigestQueue()
        queue.connected()
        queue.remove(streams[0])
        queue.add(streams[0], nowMs: 50)
        #expect(queue.dueMs == 50)
        _ = queue.begin(nowMs: 50)
        queue.add(streams[1], nowMs: 60)
        _ = queue.end()
        #expect(queue.dueMs == 80)
    }

    @Test("an answer that no stream needs any more is of no use") func abandoned() {
        var queue = DigestQueue()
        queue.add(streams[0], nowMs: 0)
        queue.add(streams[1], nowMs: 0)
        _ = queue.begin(nowMs: 5)
        #expect(queue.awaits(streams[0]) && !queue.isAbandoned)
        queue.remove(streams[0])
        queue.add(streams[1], nowMs: 6)
        #expect(!queue.awaits(streams[0]) && queue.awaits(streams[1]), "one waits for a later request")
        #expect(queue.isAbandoned)
        #expect(queue.end().isEmpty && queue.dueMs == 26)
    }
}

extension SyncClient {
    /// Opens streams in one turn. Returns their changes.
    @discardableResult
    fileprivate func openAll(_ names: [StreamName]) throws -> [ReelClient.ObjectChanges] {
        try names.map { name in
            let stream = try open("\(name)")
            return changes(of: stream.opening)
        }
    }
}
