import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Clients with more streams than a node allows as subscriptions on a connection.
@Suite(.timeLimit(.minutes(5))) struct SubscriptionLimitTests {
    private func network(limit: Int, taken: Int? = nil) throws -> FakeNetwork {
        let network = try FakeNetwork()
        network.subscriptionsMax = limit
        network.subscriptionsTaken = taken ?? limit
        return network
    }

    private func open(_ count: Int, of client: SyncClient) async throws -> [SyncStream] {
        var streams: [SyncStream] = []
        for number in 0..<count { streams.append(try await client.open("s\(number)")) }
        return streams
    }

    private func names(_ numbers: Range<Int>) -> Set<StreamName> { Set(numbers.map { StreamName("s\($0)")! }) }

    @Test(
        "every queue is sent, whatever the limit and the number of streams",
        arguments: [(2, 3), (1, 30), (2, 102), (0, 5), (30, 30)]
    )
    func allDrain(limit: Int, count: Int) async throws {
        let network = try network(limit: limit)
        let client = try network.client()
        let streams = try await open(count, of: client)
        var publications: [PublishHandle] = []
        for id in 0..<3 {
            for stream in streams { publications.append(try await stream.publish(.insert("m", id: "\(id)"))) }
        }
        for publication in publications {
            guard case .applied = try await publication.outcome() else { throw Wrong() }
        }
        for stream in streams { #expect(try stream.objects("m").map(\.name.id) == ["0", "1", "2"]) }
        let taken = try await network.on { Set($0.subscribes.map(\.stream)) }
        #expect(taken == names(0..<min(limit, count)))
        #expect(try await network.on { $0.opened } == 1, "the connection stays")
        await client.close()
    }

    @Test("a client reports a stream without a subscription once as stopped, with the code limit")
    func reportsLimitOnce() async throws {
        let network = try network(limit: 2)
        let client = try network.client()
        let notices = await client.notices()
        let streams = try await open(4, of: client)
        for _ in 0..<3 {
            for stream in streams { try await stream.publish(.insert("m", id: "0", ["n": 1])).outcome() }
            try await network.on { network in for connection in network.connections { connection.end("reset") } }
        }
        await client.close()
        var stopped: [String] = []
        for await notice in notices {
            guard case .streamFailed(let stream, let reason) = notice else { continue }
            #expect(reason.hasPrefix("limit: the node allows 2 subscriptions"))
            stopped.append(stream)
        }
        #expect(stopped == ["s2", "s3"])
    }

    @Test("the streams that were opened first keep their subscriptions after each reconnect")
    func oldestFirst() async throws {
        let network = try network(limit: 3)
        let client = try network.client()
        let streams = try await open(20, of: client)
        for round in 0..<5 {
            try await eventually { await client.phases("s0", "s1", "s2") == [.live, .live, .live] }
            for stream in streams { try await stream.publish(.insert("m", id: "0", ["n": 1])) }
            for stream in streams { try await eventually { await stream.pendingCount == 0 } }
            let taken = try await network.on { network in
                defer { network.subscribes = [] }
                for connection in network.connections { connection.end("reset") }
                return network.subscribes.map(\.stream.description)
            }
            // In the first round, the order of the snapshots decides the order of the subscriptions.
            #expect((round == 0 ? taken.sorted() : taken) == ["s0", "s1", "s2"])
            try await eventually { await client.connectedNode != nil }
        }
        await client.close()
    }

    @Test("a client sends the queues of many streams in the order of opening")
    func orderOfSending() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let streams = try await open(50, of: client)
        // The snapshots come in any order. A continued subscription needs no snapshot.
        let all = streams.map(\.name.description)
        try await eventually { await client.phases(all) == Array(repeating: .live, count: 50) }
        try await network.on { network in
            network.down = ["a"]
            network.kill("a")
        }
        for stream in streams.reversed() { try await stream.publish(.insert("m", id: "0")) }
        try await network.on { $0.down = [] }
        for stream in streams { try await eventually { await stream.pendingCount == 0 } }
        let order = try await network.on { $0.streams.compactMap { $0?.description } }
        #expect(order == (0..<50).map { "s\($0)" })
        await client.close()
    }

    @Test("a client stays with a node that accepts fewer subscriptions than promised, and sends all queues")
    func hiddenLimit() async throws {
        let network = try network(limit: 100, taken: 2)
        network.haste = 50
        let client = try network.client()
        let streams = try await open(10, of: client)
        for stream in streams {
            guard case .applied = try await stream.publish(.insert("m", id: "0")).outcome() else { throw Wrong() }
        }
        #expect(try await network.on { ($0.opened, $0.subscribes.count) } == (1, 10), "each is asked for once")
        // Some time later the node accepts more subscriptions.
        try await network.on { ($0.subscriptionsTaken, $0.aheadMs) = (nil, 60_000) }
        try await eventually { await client.phases("s9") == [.live] }
        await client.close()
    }

    @Test("a free subscription goes to the oldest stream without one, and later back to a stream that was refused")
    func freePlace() async throws {
        let network = try network(limit: 2)
        network.forbidden = names(0..<1)
        let client = try network.client()
        _ = try await open(4, of: client)
        try await eventually { await client.phases("s0", "s1", "s2", "s3") == [.failed, .live, .live, .polled] }
        try await network.on { network in
            network.forbidden = []
            for connection in network.connections { connection.end("reset") }
        }
        try await eventually { await client.phases("s0", "s1", "s2", "s3") == [.live, .live, .polled, .polled] }
        await client.close()
    }

    @Test("a long queue without a subscription is sent completely, in order and once")
    func longQueue() async throws {
        let network = try network(limit: 1)
        network.down = ["a"]
        let client = try network.client()
        let streams = try await open(2, of: client)
        for id in 0..<2_500 { try await streams[1].publish(.insert("m", id: "\(id)")) }
        try await network.on { $0.down = [] }
        try await eventually { await streams[1].pendingCount == 0 }
        let sent = try await network.on { network in
            network.events(StreamName("s1")!, 0, network.head).events.compactMap { event in
                String(decoding: event.value, as: UTF8.self).firstMatch(of: /"id":"(\d+)"/).flatMap { Int($0.1) }
            }
        }
        #expect(sent == Array(0..<2_500))
        await client.close()
    }

    @Test("a device rebases an event below the horizon on the state of a poll")
    func rebasesOnPolledState() async throws {
        let network = try network(limit: 1)
        network.down = ["a"]
        let client = try network.client()
        let streams = try await open(2, of: client)
        try await streams[1].publish(.insert("m", id: "0"))
        try await network.on { network in
            network.append(StreamName("s1")!, [])
            network.skip(70_000)
            network.down = []
        }
        try await eventually { await streams[1].pendingCount == 0 }
        #expect(try streams[1].confirmed.object("m", id: "0") != nil)
        await client.close()
    }

    @Test("a client polls a stream without a subscription for events of other devices after half a minute")
    func pollsForEvents() async throws {
        let network = try network(limit: 1)
        network.haste = 50
        let client = try network.client()
        let streams = try await open(2, of: client)
        try await streams[1].publish(.insert("m", id: "mine")).outcome()
        try await eventually { await client.isPollPlanned(afterMs: 29_000) }
        let other = try network.client(seed: 9)
        try await other.open("s1").publish(.insert("m", id: "theirs")).outcome()
        #expect(try streams[1].object("m", id: "theirs") == nil)
        try await network.on { $0.aheadMs = 31_000 }
        try await eventually { try streams[1].object("m", id: "theirs") != nil }
        await other.close()
        await client.close()
    }

    @Test("a client increases the poll interval of a stream with a blocked queue")
    func backoff() async throws {
        let network = try network(limit: 0)
        network.readers = ["reader"]
        // The silence timeout must not end a connection, however far the clock moves.
        (network.haste, network.heldPauses) = (50, [SyncClient.silenceMs])
        let client = try network.client(token: "reader")
        try await client.open("s").publish(.insert("m", id: "1"))
        var pauses: [Int64] = []
        while pauses.last ?? 0 < StreamSync.idlePollMs {
            if let pauseMs = await client.pollPauseMs, pauseMs != pauses.last { pauses.append(pauseMs) }
            try await network.on { $0.aheadMs += 5 }
        }
        // On a busy machine only some of the pauses may appear here. `StreamSyncTests` tests all of them.
        #expect(pauses.count > 1 && zip(pauses, pauses.dropFirst()).allSatisfy { $0 < $1 })
        await client.close()
    }

    @Test("polls are limited in number and rate, and the stream that has waited longest is polled first")
    func schedule() {
        var polls = PollSchedule()
        let streams = (0..<10).map { StreamName("s\($0)")! }
        for stream in streams.reversed() { polls.ask(stream, atMs: 100) }
        polls.ask(streams[0], atMs: 90)
        polls.ask(streams[0], atMs: 500)
        #expect(polls.next(nowMs: 89) == nil)
        #expect(polls.nextMs == 90)
        #expect(polls.next(nowMs: 100) == streams[0])
        #expect(polls.next(nowMs: 119) == nil)
        #expect(polls.nextMs == 120)
        #expect([120, 140, 160].map { polls.next(nowMs: $0) } == [streams[9], streams[8], streams[7]])
        #expect(polls.nextMs == nil)
        #expect(polls.next(nowMs: 1_000) == nil, "four are under way")
        polls.ask(streams[9], atMs: 0)
        polls.remove(streams[9])
        #expect(polls.next(nowMs: 1_000) == streams[6], "one under way is not planned again")
        for stream in streams { polls.remove(stream) }
        #expect(polls.nextMs == nil)
    }
}

extension SyncClient {
    /// The states of a stream that tests wait for.
    enum Phase {
        case live
        case polled
        case failed
        case other
    }

    func phases(_ names: String...) -> [Phase] { phases(names) }

    func phases(_ names: [String]) -> [Phase] {
        names.map { name in
            switch opened[StreamName(name)!]?.sync.state {
            case .live: .live
            case .polled: .polled
            case .failed: .failed
            default: .other
            }
        }
    }

    fileprivate var pollPauseMs: Int64? {
        if case .polled(let poll) = opened.values[0].sync.state { poll.pauseMs } else { nil }
    }

    fileprivate func isPollPlanned(afterMs: Int64) -> Bool {
        polls.nextMs.map { $0 >= transport.nowMs + afterMs } ?? false
    }
}
