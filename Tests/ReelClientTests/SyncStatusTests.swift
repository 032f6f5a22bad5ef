import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// The state of a client as a value. Problems begin with a fault and end with its repair.
@Suite(.timeLimit(.minutes(5))) struct SyncStatusTests {
    /// Waits until the client has exactly these problems.
    private func eventually(_ client: SyncClient, has codes: [ErrorCode], _ stream: String? = nil) async throws {
        try await TestSupport.eventually {
            let problems = client.status.problems
            return problems.map(\.code) == codes && (stream == nil || problems.allSatisfy { $0.stream == stream })
        }
    }

    @Test("a publish without an answer is a problem with the log, as old as the publish")
    func unanswered() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        try await stream.publish(.insert("m", id: "0")).outcome()
        try await network.on { network in
            (network.dropsAcks, network.isSilent) = (true, true)
            network.heldPauses = [SyncClient.answerMs]
        }
        _ = try await stream.publish(.insert("m", id: "1"))
        try await TestSupport.eventually { (try? await network.on { $0.log.count }) == 2 }
        #expect(client.status.problems.isEmpty)
        try await network.on { network in
            network.aheadMs += SyncClient.answerMs
            network.fireDeadlines(1)
        }
        try await eventually(client, has: [.logUnavailable], "s")
        try await network.on { $0.aheadMs += 20_000 }
        let problem = try #require(await stream.problems.first)
        #expect(try await network.on { $0.wallMs } - problem.sinceMs >= 25_000)
        // The fold reads the event. It was durable all the time.
        try await network.on { network in
            (network.dropsAcks, network.isSilent) = (false, false)
            network.pushAll()
        }
        try await eventually(client, has: [])
        await client.close()
    }

    @Test("a client reports a nack caused by the node's log until the node takes the event")
    func reportsLogNack() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        try await network.on { $0.nack = ReelError(.logUnavailable, "the brokers are away", retryMs: 10) }
        let publication = try await stream.publish(.insert("m", id: "0"))
        try await eventually(client, has: [.logUnavailable], "s")
        #expect(await stream.problems.first?.message == "the brokers are away")
        try await network.on { $0.nack = nil }
        try await publication.outcome()
        #expect(client.status.problems.isEmpty)
        await client.close()
    }

    @Test("a missing right is a problem of its stream, and ends with a token that gives the right")
    func rights() async throws {
        let network = try FakeNetwork()
        try await network.on { ($0.readers, $0.strangers) = (["reader"], ["stranger"]) }
        let client = try network.client(token: "reader")
        let stream = try await client.open("s", from: .beginning)
        let other = try await client.open("t", from: .beginning)
        let publication = try await stream.publish(.insert("m", id: "0"))
        try await eventually(client, has: [.forbidden], "s")
        #expect(await other.problems.isEmpty)
        try await network.on { network in
            network.readers = []
            network.kill("a")
            network.down = []
        }
        try await publication.outcome()
        try await eventually(client, has: [])
        await client.close()

        let stranger = try network.client(token: "stranger", seed: 9)
        let hidden = try await stranger.open("s", from: .beginning)
        try await eventually(stranger, has: [.forbidden], "s")
        try await network.on { network in
            network.strangers = []
            network.kill("a")
            network.down = []
        }
        try await hidden.waitUntil(seq: 0)
        try await eventually(stranger, has: [])
        await stranger.close()
    }

    @Test("a rejected token and a missing token are problems of the client")
    func tokens() async throws {
        let network = try FakeNetwork()
        try await network.on { $0.tokens = ["good"] }
        let refused = try network.client(token: "bad")
        try await refused.open("s", from: .beginning)
        try await TestSupport.eventually { refused.status.problems.map(\.code) == [.unauthorized, .offline] }
        try await network.on { $0.tokens = nil }
        try await eventually(refused, has: [])
        await refused.close()

        struct Nobody: Error {}
        let asked = Counter()
        let poor = try network.client(renewToken: {
            if asked.next() < 3 { throw Nobody() }
            return "good"
        })
        try await poor.open("s", from: .beginning)
        let states = await poor.collected { $0.connectedNode != nil }
        #expect(states.contains { $0.problems.contains { $0.code == .noToken } })
        #expect(poor.status.problems.isEmpty)
        await poor.close()
    }

    @Test("a cold device in a later epoch reports a missing state at once, and starts once a node has it")
    func noSnapshotNode() async throws {
        let network = try FakeNetwork()
        let (author, _) = try await network.author(of: 2, on: "a")
        await author.close()
        try await network.on { network in
            network.goOver(to: Epoch(2), lagging: [])
            network.hasSnapshots = false
        }
        let client = try network.client()
        let notices = await client.notices()
        let stream = try await client.open("s")
        try await eventually(client, has: [.nodeBehind], "s")
        // Each such period has one notice.
        for await notice in notices {
            guard case .snapshotUnavailable(stream: "s", let reason) = notice else { continue }
            #expect(reason.contains("node_behind"))
            break
        }
        #expect(await client.connectedNode == "a", "the connection is not the matter")
        try await network.on { $0.hasSnapshots = true }
        try await TestSupport.eventually { try stream.objects("m").count == 2 }
        try await eventually(client, has: [])
        await client.close()
    }

    @Test("a client reports a lost connection and its age until a welcome; a client without nodes reports none")
    func lostConnection() async throws {
        let network = try FakeNetwork()
        try await network.on { $0.down = ["a", "b"] }
        let client = try network.client(nodes: ["a", "b"])
        #expect(client.status == SyncStatus(), "a client that has opened nothing looks for no node")
        try await client.open("s", from: .beginning)
        try await eventually(client, has: [.offline])
        try await network.on { $0.aheadMs += 60_000 }
        let sinceMs = try #require(client.status.problems.first).sinceMs
        #expect(try await network.on { $0.wallMs } - sinceMs >= 60_000)
        #expect(abs(try #require(client.status.offlineSinceMs) - sinceMs) < 1_000)
        try await network.on { $0.down = ["a"] }
        try await eventually(client, has: [])
        #expect(client.status.connectedNode == "b")
        await client.close()
        #expect(client.status.connectedNode == nil)

        let alone = try network.client(nodes: [])
        try await alone.open("s").publish(.insert("m", id: "0"))
        #expect(alone.status.problems.isEmpty && alone.status.connectedNode == nil)
        await alone.close()
    }

    @Test("a client reports an unknown barrier with the code newer_log")
    func newerLog() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        try await stream.publish(.insert("m", id: "0")).outcome()
        try await network.on { network in
            network.append(nil, Array(#"{"of":"later","type":"barrier"}"#.utf8))
            let barrier = DeliveredEvent(seq: network.head, value: network.log[Int(network.head)])
            let events = ServerFrame.Events(
                stream: StreamName("s")!,
                from: network.head,
                to: network.head,
                events: [barrier]
            )
            network.sayToAll(.events(events))
        }
        try await eventually(client, has: [.newerLog], "s")
        await client.close()
    }

    @Test("a loop over the states gets the present state first, then each change; two loops are independent")
    func loops() async throws {
        let network = try FakeNetwork()
        try await network.on { $0.down = ["a"] }
        let client = try network.client()
        try await client.open("s", from: .beginning)
        var first = client.statuses().makeAsyncIterator()
        var second = client.statuses().makeAsyncIterator()
        #expect(await first.next()?.problems.map(\.code) == [.offline])
        #expect(await second.next()?.problems.map(\.code) == [.offline])
        try await network.on { $0.down = [] }
        for await state in client.statuses() where state.connectedNode == "a" { break }
        // A slow loop gets the newest state, and not every earlier state.
        while let state = await second.next(), state.connectedNode == nil {}
        #expect(client.status.problems.isEmpty)
        await client.close()
        while await first.next() != nil {}
        while await second.next() != nil {}
        // A loop that begins later also gets the present state.
        let late = await Array(client.statuses())
        #expect(late.count == 1 && late[0].connectedNode == nil)
    }

    @Test("a loop over the states does not keep the client, and ends with the client")
    func lettingGo() async throws {
        let network = try FakeNetwork()
        var client: SyncClient? = try network.client()
        weak let weakClient = client
        try await client?.open("s", from: .beginning)
        let states = try #require(client?.statuses())
        let loop = Task { for await _ in states {} }
        client = nil
        await loop.value
        #expect(weakClient == nil)
    }
}

/// Counts calls.
private final class Counter: @unchecked Sendable {
    private var count = 0
    func next() -> Int {
        defer { count += 1 }
        return count
    }
}

extension SyncClient {
    /// Returns the states up to the first state that satisfies the condition.
    fileprivate func collected(until isLast: (SyncStatus) -> Bool) async -> [SyncStatus] {
        var found: [SyncStatus] = []
        for await state in statuses() {
            found.append(state)
            if isLast(state) { break }
        }
        return found
    }
}

extension Array {
    fileprivate init(_ states: Statuses<SyncStatus>) async where Element == SyncStatus {
        self = []
        for await state in states { append(state) }
    }
}
