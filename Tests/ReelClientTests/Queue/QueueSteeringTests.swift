import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

@Suite(.timeLimit(.minutes(5))) struct QueueSteeringTests {
    private func splice(_ offset: Int64, _ text: String) -> SyncEvent {
        .update("m", id: "0", operations: ["text": .splice([TextSplice(at: offset, removing: 0, inserting: text)])])
    }

    @Test("the list of the queue shows each event with its progress, its age and the reason why it waits")
    func list() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        try await stream.publish(.insert("m", id: "0", ["text": "a"])).outcome()
        #expect(await stream.queue().isEmpty)
        try await network.on { ($0.isSilent, $0.dropsAcks) = (true, true) }
        try await stream.publish(.update("m", id: "0", ["n": 1]))
        try await eventually { await stream.queue().map(\.state) == [.sent] }
        try await network.on { network in
            network.down = ["a"]
            network.kill("a")
            network.aheadMs += 3_600_000
        }
        try await stream.publish(.update("m", id: "0", ["o": 1]))
        try await stream.publish(.update("m", id: "0", ["o": 2]))
        try await eventually { await client.connectedNode == nil }
        let queue = await stream.queue()
        #expect(queue.map(\.state) == [.sent, .waiting])
        #expect(queue.last?.event == .update("m", id: "0", ["o": 2]), "merged writes are one event")
        let wallMs = try await network.on { $0.wallMs }
        let ages = queue.map { wallMs - $0.sinceMs }
        #expect(ages[0] >= 3_600_000 && ages[1] < 3_600_000)
        for event in queue {
            guard case .problem = event.reason else { throw Wrong() }
        }
        await client.close()
    }

    @Test("a withdrawn event disappears from the objects and the file, and its outcome is reduced")
    func withdraw() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        try await network.on { $0.down = ["a"] }
        var client = try network.client(store: .file(path))
        var stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "0", ["text": "a"]))
        let publication = try await stream.publish(.insert("m", id: "1"))
        let id = try #require(await stream.queue().last?.id)
        try await stream.withdraw(id)
        #expect(try await publication.outcome() == .superseded)
        #expect(try stream.object("m", id: "1") == nil)
        await #expect(throws: WithdrawalRefused.notQueued(id)) { try await stream.withdraw(id) }
        await client.close()
        client = try network.client(store: .file(path))
        stream = try await client.open("s")
        #expect(await stream.queue().map(\.event) == [.insert("m", id: "0", ["text": "a"])])
        await client.close()
    }

    /// Returns a device with one event that it has sent and that no node answers.
    private func withSentEvent() async throws -> (FakeNetwork, SyncClient, SyncStream) {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        try await network.on { ($0.isSilent, $0.dropsAcks) = (true, true) }
        try await stream.publish(.insert("m", id: "0"))
        try await eventually { await stream.queue().map(\.state) == [.sent] }
        return (network, client, stream)
    }

    @Test("a device cannot withdraw an event that was sent")
    func withdrawSent() async throws {
        let (_, client, stream) = try await withSentEvent()
        let id = try #require(await stream.queue().first?.id)
        await #expect(throws: WithdrawalRefused.sent(id)) { try await stream.withdraw(id) }
        #expect(try await stream.discard() == 0, "nor discarded")
        await client.close()
    }

    @Test("a device refuses splices that depend on a withdrawn text, up to the next plain write of the text")
    func withdrawText() throws {
        var outbox = Outbox(seed: 1)
        func add(_ event: SyncEvent) -> Int64 { outbox.add(event, base: 0, rules: nil) { _ in true } }
        let title = add(.update("m", id: "0", ["text": "title"]))
        let counting = add(splice(5, "x"))
        let elsewhere = add(
            .update("m", id: "1", operations: ["text": .splice([TextSplice(at: 0, removing: 0, inserting: "y")])])
        )
        let batch = add(
            .batch([
                .update("m", id: "0", operations: ["text": .splice([TextSplice(at: 6, removing: 0, inserting: "z")])]),
                .update("m", id: "1", ["text": "b"]),
            ])
        )
        let onBatch = add(
            .update("m", id: "1", operations: ["text": .splice([TextSplice(at: 1, removing: 0, inserting: "c")])])
        )
        let written = add(.update("m", id: "0", ["text": "new"]))
        let after = add(splice(3, "!"))
        _ = outbox.takeNotices()
        try outbox.withdraw(title)
        #expect(outbox.entries.map(\.number) == [elsewhere, written, after])
        let outcomes = outbox.takeNotices().compactMap { notice -> (Int64, Bool)? in
            guard case .settled(let number, let outcome) = notice else { return nil }
            return (number, outcome == .superseded)
        }
        #expect(outcomes.map(\.0) == [title, counting, batch, onBatch])
        #expect(outcomes.map(\.1) == [true, false, false, false])
    }

    @Test("discard removes the events that were never sent, and the other events stay")
    func discard() async throws {
        let (network, client, stream) = try await withSentEvent()
        try await network.on { network in
            network.down = ["a"]
            network.kill("a")
        }
        var publications: [PublishHandle] = []
        for id in 1..<4 { publications.append(try await stream.publish(.insert("m", id: "\(id)"))) }
        #expect(try await stream.discard() == 3)
        for publication in publications { #expect(try await publication.outcome() == .superseded) }
        #expect(try stream.objects("m").map(\.name.id) == ["0"])
        await client.close()
    }

    @Test("flush returns when the device has read back all waiting events")
    func flush() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let (s, t) = (try await client.open("s", from: .beginning), try await client.open("t", from: .beginning))
        for id in 0..<300 {
            try await s.publish(.insert("m", id: "\(id)"))
            try await t.publish(.insert("m", id: "\(id)"))
        }
        try await s.flush(deadline: .seconds(300))
        #expect(await s.pendingCount == 0)
        try await client.flush(deadline: .seconds(300))
        #expect(await t.pendingCount == 0)
        try await client.flush(deadline: .zero)
        await client.close()
    }

    @Test("what flush has waited for is in the confirmed state, whatever the moment of the call")
    func flushedIsReadable() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        for id in 0..<500 {
            try await stream.publish(.insert("m", id: "\(id)"))
            for _ in 0..<(id % 10) { await Task.yield() }
            try await id.isMultiple(of: 2)
                ? stream.flush(deadline: .seconds(300)) : client.flush(deadline: .seconds(60))
            #expect(try stream.confirmed.object("m", id: "\(id)") != nil)
        }
        await client.close()
    }

    @Test("flush throws after its deadline and names the events that still wait, with their reasons")
    func flushTimeout() async throws {
        let network = try FakeNetwork()
        try await network.on { $0.down = ["a"] }
        let client = try network.client()
        let stream = try await client.open("s")
        for id in 0..<2 { try await stream.publish(.insert("m", id: "\(id)")) }
        let error = await #expect(throws: FlushTimeout.self) { try await client.flush(deadline: .milliseconds(20)) }
        #expect(error?.waiting.map(\.event) == [.insert("m", id: "0"), .insert("m", id: "1")])
        guard case .problem(.offline, _)? = error?.waiting.first?.reason else { throw Wrong() }
        #expect(await stream.pendingCount == 2)
        let flush = Task { try await stream.flush(deadline: .seconds(600)) }
        flush.cancel()
        await #expect(throws: CancellationError.self) { try await flush.value }
        let last = Task { try await stream.flush(deadline: .seconds(600)) }
        try await eventually { await client.flushes("s") == 1 }
        await client.close()
        await #expect(throws: ReelError.closed) { try await last.value }
    }

    @Test("the age of an event of an earlier run counts from the moment at which its stream was opened")
    func age() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        var client = try network.client(nodes: [], store: .file(path))
        try await client.open("s").publish(.insert("m", id: "0"))
        await client.close()
        try await network.on { $0.aheadMs += 100_000 }
        client = try network.client(nodes: [], store: .file(path))
        let stream = try await client.open("s")
        try await network.on { $0.aheadMs += 100_000 }
        let sinceMs = try #require(await stream.queue().first?.sinceMs)
        let ageMs = try await network.on { $0.wallMs } - sinceMs
        #expect((100_000..<200_000).contains(ageMs))
        await client.close()
    }

    @Test("the time since which an event waits is the same in each list of the queue and in the status")
    func constantAge() async throws {
        let network = try FakeNetwork()
        try await network.on { $0.down = ["a"] }
        let client = try network.client()
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "0"))
        let sinceMs = try #require(await stream.queue().first?.sinceMs)
        // The wall clock and the monotonic clock drift apart, as when the user sets the clock.
        for aheadMs: Int64 in [1, 1_000, 3_600_000] {
            try await network.on { $0.wallAheadMs += aheadMs }
            try await stream.publish(.update("m", id: "0", ["n": 1]))
            #expect(await stream.queue().map(\.sinceMs) == [sinceMs])
            #expect(stream.status.pending.sinceMs == sinceMs)
        }
        await client.close()
    }

    @Test("the reason of a waiting event and the error of a flush are in plain words")
    func plainWords() {
        let reasons: [QueuedEvent.Reason] = [
            .problem(.offline, message: "no node is connected"), .reading, .turn, .pause(ms: 200), .rejection, .answer,
            .confirmation,
        ]
        #expect(
            reasons.map { "\($0)" } == [
                "no node is connected (offline)", "the device first reads the stream up to its head",
                "earlier events are sent first, or the event is about to be sent", "the event is sent again in 200 ms",
                "the stream has not rejected an earlier event of this device yet", "the node has not answered yet",
                "the device has not read the event back from the stream yet",
            ]
        )
        let event = QueuedEvent(
            id: 1,
            stream: "s",
            event: .insert("m", id: "0"),
            sinceMs: 0,
            state: .waiting,
            reason: reasons[0]
        )
        #expect(
            FlushTimeout(waiting: [event, event]).description
                == "2 own events wait after the deadline, the first in the stream s: waiting, no node is connected (offline)"
        )
    }

    private struct Wrong: Error {}
}

extension SyncClient {
    /// The number of calls that wait for the queue of a stream.
    fileprivate func flushes(_ name: String) -> Int { StreamName(name).flatMap { opened[$0] }?.flushes.count ?? 0 }
}
