import ReelCore
import Synchronization
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Closed streams: the client and its other streams continue, and the stream can be opened again.
@Suite(.timeLimit(.minutes(5))) struct ClosingTests {
    private let s = StreamName("s")!

    private func expectClosed(_ body: () async throws -> Void, _ line: Int = #line) async {
        let error = await #expect(throws: ReelError.self, "line \(line)") { try await body() }
        #expect(error?.code == .closed && error?.message.contains("the stream s") == true, "line \(line): \(error!)")
    }

    @Test("a closed stream ends at the node and in memory, and opens again from the store")
    func closes() async throws {
        let network = try await FakeNetwork.with(objects: 50)
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try network.client(store: .file(path))
        let stream = try await client.open("s")
        let other = try await client.open("t")
        try await stream.waitUntil(seq: 49)
        let before = await stream.digest()
        let name = s
        let state = WeakState()
        try await network.on { _ in client.assumeIsolated { state.value = $0.opened[name] } }
        try await network.on { _ in #expect(state.value != nil) }
        await stream.close()
        try await eventually { try await network.on { _ in state.value == nil } }
        try await eventually { try await network.on { $0.connections.allSatisfy { $0.proven[name] == nil } } }
        await expectClosed { _ = try stream.object("m", id: "1") }
        await expectClosed { _ = try stream.confirmed.objects("m") }
        await expectClosed { _ = try client.read([other, stream]) { $0.count } }
        await expectClosed { try await stream.publish(.insert("m", id: "x")) }
        await expectClosed { try await stream.replace("m", id: "1", [:]) }
        await expectClosed { try await stream.enqueue(.insert("m", id: "x")).stored() }
        await expectClosed { try await stream.waitUntil(seq: 3) }
        await expectClosed { try await stream.flush(deadline: .zero) }
        await expectClosed { try await stream.discard() }
        await expectClosed { try await stream.withdraw(1) }
        let (seq, digest, queued, queue) = await (stream.seq, stream.digest(), stream.pendingCount, stream.queue())
        #expect(seq == -1 && digest == nil && queued == 0 && queue.isEmpty)
        let (pending, coverage, problems) = await (stream.pending(), stream.coverage(), stream.problems)
        #expect(pending.isEmpty && coverage.ranges.isEmpty && problems.isEmpty)
        #expect(try await client.streams() == [.init(id: "s", pendingCount: 0), .init(id: "t", pendingCount: 0)])

        let asked = try await network.on { $0.requests.count { $0.contains("/s/snapshot") } }
        let again = try await client.open("s")
        #expect(try again.objects("m").count == 50)
        #expect(await again.digest() == before)
        try await network.on { $0.author(.insert("m", id: "50")) }
        try await network.on { $0.pushAll() }
        try await again.waitUntil(seq: 50)
        let snapshots = try await network.on { $0.requests.count { $0.contains("/s/snapshot") } }
        #expect(snapshots == asked, "no snapshot is read")
        // The former values of the stream stay closed.
        await expectClosed { _ = try stream.object("m", id: "1") }
        await stream.close()
        #expect(try again.objects("m").count == 51)
        await client.close()
        await stream.close()
        await again.close()
        let error = #expect(throws: ReelError.self) { try again.objects("m") }
        #expect(error == .closed)
    }

    @Test("events that wait stay in the store, and are sent when the stream is opened again")
    func waiting() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "0")).outcome()
        try await network.on { $0.dropsAcks = true }
        try await network.on { $0.isSilent = true }
        let sent = try await stream.publish(.insert("m", id: "1"))
        let asking = Task { try await sent.outcome() }
        try await eventually { try await network.on { $0.log.count } == 2 }
        try await network.on { network in
            network.down = ["a"]
            network.kill("a")
        }
        let waiting = try await stream.publish(.insert("m", id: "2"))
        await stream.close()
        await expectClosed { _ = try await asking.value }
        await expectClosed { try await waiting.acked() }
        try await network.on { ($0.dropsAcks, $0.isSilent, $0.down) = (false, false, []) }
        #expect(try await client.streams() == [.init(id: "s", pendingCount: 2)])
        try await client.open("t").publish(.insert("m", id: "0")).outcome()
        #expect(try await network.on { $0.log.count } == 3, "a closed stream sends nothing")
        let again = try await client.open("s")
        try await again.flush(deadline: .seconds(300))
        #expect(try again.confirmed.objects("m").map(\.name.id) == ["0", "1", "2"])
        let name = s
        #expect(try await network.on { $0.fold(name).consumed } == 3)
        await client.close()
    }

    @Test("iterations and waiting calls end, also when they close the stream themselves")
    func iterations() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        let changes = await stream.changes()
        let reading = Task { for await _ in changes {} }
        let waiting = Task { try await stream.waitUntil(seq: 99) }
        let closing = Task {
            for await batch in await stream.changes() where batch.objects.contains(ObjectName("m", id: "1")) {
                await stream.close()
            }
        }
        try await eventually { await client.hasWaitingReader }
        try await stream.publish(.insert("m", id: "0")).outcome()
        try await stream.publish(.insert("m", id: "1"))
        await closing.value
        await reading.value
        await expectClosed { try await waiting.value }
        var later = await stream.changes().makeAsyncIterator()
        #expect(await later.next() == nil)
        // Inside a read, which keeps its moment.
        let again = try await client.open("s")
        let shown = try again.read { moment in
            network.execute { client.assumeIsolated { $0.close(again.opening) } }
            return try moment.objects("m").count
        }
        #expect(shown == 2)
        try await eventually { (try? again.objects("m")) == nil }
        await client.close()
    }

    @Test(
        "a stream is closed while its snapshot arrives, and its next load continues that snapshot",
        arguments: [true, false]
    )
    func loading(isAsked: Bool) async throws {
        let network = try await FakeNetwork.with(objects: 6_000)
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try network.client(store: .file(path))
        let closed = Mutex(false)
        let opening = StreamOpening(name: s, number: 0)
        if isAsked {
            try await network.on { $0.holdsAnswers = true }
        } else {
            try await network.on { network in
                network.cuts = [900_000]
                network.cutAnswer = { receive in
                    client.assumeIsolated { $0.close(opening) }
                    closed.withLock { $0 = true }
                    receive(.body([0]))
                    receive(.end)
                }
            }
        }
        let stream = try await client.open("s")
        if isAsked {
            try await eventually { try await network.on { !$0.heldAnswers.isEmpty } }
            await stream.close()
            try await network.on { $0.answerHeld() }
        } else {
            try await eventually { closed.withLock { $0 } }
        }
        await expectClosed { _ = try stream.objects("m") }
        let again = try await client.open("s")
        try await again.waitUntil(seq: 5_999)
        #expect(try again.objects("m").count == 6_000)
        let rests = try await network.on { $0.requests.count { $0.contains("/delta?after=") && $0.contains("&id=") } }
        #expect(rests == (isAsked ? 0 : 1), "a snapshot that was cut is continued")
        await client.close()
    }

    @Test("an event is in the queue, or its publish throws, when the stream is closed at the same time")
    func concurrently() async throws {
        let network = try FakeNetwork()
        try await network.on { $0.down = ["a"] }
        let client = try network.client()
        for round in 0..<10 {
            let stream = try await client.open("s")
            let count = try await withThrowingTaskGroup(of: Int.self) { group in
                for id in 0..<20 {
                    group.addTask {
                        do {
                            let event = SyncEvent.insert("m", id: "\(round)-\(id)")
                            if id.isMultiple(of: 2) {
                                try await stream.publish(event)
                            } else {
                                try await stream.enqueue(event).stored()
                            }
                            return 1
                        } catch let error as ReelError where error.code == .closed {
                            return 0
                        }
                    }
                }
                group.addTask {
                    await stream.close()
                    return 0
                }
                return try await group.reduce(0, +)
            }
            #expect(try await client.streams().first?.pendingCount == count)
            let again = try await client.open("s")
            #expect(try again.objects("m").count == count)
            try await again.discard()
            await again.close()
        }
        await client.close()
    }

    @Test("an answer to an earlier subscription of the same connection does not count for a later one")
    func answersOnTheirWay() async throws {
        let network = try FakeNetwork()
        try await network.on { $0.hasSnapshots = false }
        let client = try network.client()
        try await client.open("t", from: .beginning).publish(.insert("m", id: "0")).outcome()
        let name = s
        let count = Mutex(0)
        try await network.on { network in
            network.lies["a"] = { connection, frame in
                guard case .subscribe(let subscribe) = frame.body, subscribe.stream == name else { return false }
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                // Between the two subscriptions the node says nothing of the stream.
                if number == 2 {
                    network.author(.insert("m", id: "1"))
                    connection.say(.upto(partition: 0, seq: network.head))
                }
                return false
            }
        }
        let stream = try await network.on { _ in
            client.assumeIsolated { client in
                let first = try! client.open("s", from: .beginning)
                client.close(first.opening)
                return try! client.open("s", from: .beginning)
            }
        }
        try await stream.waitUntil(seq: 1)
        #expect(try stream.objects("m").count == 1)
        #expect(count.withLock { $0 } == 2)
        await client.close()
    }

    @Test("a closed stream leaves its subscription to the next one, and its problems end")
    func places() async throws {
        let network = try FakeNetwork()
        try await network.on { $0.subscriptionsMax = 1 }
        let client = try network.client()
        let first = try await client.open("a")
        let second = try await client.open("b")
        try await eventually { await second.problems.map(\.code) == [.limit] }
        await first.close()
        try await eventually { await second.problems.isEmpty }
        let name = StreamName("b")!
        try await eventually { try await network.on { $0.connections.first?.proven[name] != nil } }
        try await network.on { $0.forbidden = [StreamName("c")!] }
        let third = try await client.open("c")
        await second.close()
        try await eventually { await !third.problems.isEmpty }
        await third.close()
        #expect(client.status.problems.isEmpty)
        await client.close()
    }
}

/// A reference to the memory of a stream. Used on the network's loop only.
private final class WeakState: @unchecked Sendable {
    weak var value: StreamState?
}
