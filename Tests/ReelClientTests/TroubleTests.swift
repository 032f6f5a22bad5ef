import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Frames of a node other than events, and the device's reaction to them.
@Suite(.timeLimit(.minutes(5))) struct TroubleTests {
    @Test("a client rejects an invalid stream name with the full naming rule", arguments: ["~a", "..", "a b", ""])
    func rejectsStreamName(
        _ name: String
    ) async throws {
        let client = try FakeNetwork().client()
        let error = await #expect(throws: ReelError.self) { try await client.open(name) }
        #expect(error == ReelError(.badStream, "found \(name.debugDescription), expected \(StreamName.rule)"))
    }

    @Test("a client leaves a node that announces a log without partitions", arguments: [true, false])
    func logWithoutPartitions(holdsState: Bool) async throws {
        let network = try FakeNetwork()
        try await network.on { $0.author(.insert("m", id: "0")) }
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        if holdsState { try await stream.waitUntil(seq: 0) }
        var notices = await client.notices().makeAsyncIterator()
        try await network.on { network in
            network.partitions = 0
            for connection in network.connections { connection.end("reset") }
        }
        while let notice = await notices.next() {
            if case .disconnected(_, let reason) = notice, reason.contains("0 partitions") { break }
        }
        try await network.on { $0.partitions = 1 }
        try await stream.publish(.insert("m", id: "1")).outcome()
        #expect(try stream.objects("m").count == 2)
        await client.close()
    }

    @Test("a device leaves a node that sends goaway, for a node that the frame names") func aNodeThatAsks() async throws
    {
        let network = try FakeNetwork()
        let client = try network.client(nodes: ["a"])
        let stream = try await client.open("s", from: .beginning)
        try await stream.publish(.insert("m", id: "0")).outcome()
        try await network.on { $0.sayToAll(.goaway(afterMs: 5, nodes: ["b"])) }
        try await eventually { await client.connectedNode == "b" }
        try await stream.publish(.insert("m", id: "1")).outcome()
        #expect(try await network.on { $0.log.count } == 2)
        #expect(await client.nodes == ["a", "b"])
        await client.close()
    }

    @Test("a client with one node continues at a node that the killed node named in its welcome") func namedInWelcome()
        async throws
    {
        let network = try FakeNetwork()
        try await network.on { $0.named = ["b"] }
        let client = try network.client(nodes: ["a"])
        let stream = try await client.open("s", from: .beginning)
        try await stream.publish(.insert("m", id: "0")).outcome()
        try await network.on { network in
            network.down = ["a"]
            for connection in network.connections { connection.end("reset") }
        }
        try await stream.publish(.insert("m", id: "1")).outcome()
        #expect(await client.connectedNode == "b")
        await client.close()
    }

    @Test("a client with one node continues at a node that the killed node named after the welcome")
    func namedLater() async throws {
        let network = try FakeNetwork()
        let client = try network.client(nodes: ["a"])
        let stream = try await client.open("s", from: .beginning)
        try await stream.publish(.insert("m", id: "0")).outcome()
        try await network.on { network in
            #expect(network.takesNodes == [true])
            network.sayToAll(.nodes(["b"]))
            network.down = ["a"]
            for connection in network.connections { connection.end("reset") }
        }
        try await stream.publish(.insert("m", id: "1")).outcome()
        #expect(await client.connectedNode == "b")
        #expect(await client.nodes == ["a", "b"])
        await client.close()
    }

    @Test("a subscription that ended with an error proves no more seqs") func aSubscriptionThatThe()
        async throws
    {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        try await stream.publish(.insert("m", id: "0")).outcome()
        let name = try #require(StreamName("s"))
        let author = try await client.open("s2", from: .beginning)
        try await author.publish(.insert("m", id: "0")).outcome()
        try await network.on { network in
            // The node cannot read this stream any further. Another stream of the partition continues.
            network.sayToAll(.error(ServerFrame.Failure(ReelError(.logUnavailable, "away"), stream: name)))
            network.append(name, network.log[0])
            network.sayToAll(.upto(partition: 0, seq: network.head))
        }
        try await stream.waitUntil(seq: 2)
        #expect(await stream.seq == 2)
        let subscribe = try #require(try await network.on { $0.subscribes.last })
        #expect(subscribe.position == .after(1), "the seq that an `upto` passed after the end is asked for")
        await client.close()
    }

    @Test("in a new epoch, a device keeps the queue and drops all data of the old log") func aNewEpochKeepsThe()
        async throws
    {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let client = try network.client(store: .file(path), seed: 2)
        let stream = try await client.open("s")
        for id in 0..<6 { try await stream.publish(.insert("old", id: "\(id)", ["a": 0])).outcome() }
        try await network.on { $0.down = ["a"] }
        try await network.on { $0.kill("a") }
        let kept = try await stream.publish(.insert("new", id: "0"))
        let guarded = try await stream.publish(SyncEvent(.update("old", id: "0", ["a": 1]).guarded(["a": 0])))
        try await network.on { network in
            network.beginEpoch(Epoch(2))
            // In the new log, other devices' events have the seqs of this device's events.
            network.skip(8)
            network.down = []
        }
        guard case .applied(8) = try await kept.outcome() else { throw Wrong() }
        guard case .failed(let error) = try await guarded.outcome(), error.code == .epochChanged else { throw Wrong() }
        #expect(try stream.objects("old").isEmpty)
        let digest = await stream.digest()
        await client.close()

        let later = try network.client(store: .file(path), seed: 2)
        try await network.on { $0.down = ["a"] }
        let again = try await later.open("s")
        #expect(try again.objects("old").isEmpty, "events of the old log are gone from the store")
        #expect(await again.digest() == digest)
        #expect(await again.seq == 8)
        await later.close()
    }

    @Test("a subscription names the last event that its device has") func aSubscriptionNamesThe() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        for id in 0..<3 { try await stream.publish(.insert("m", id: "\(id)")).outcome() }
        // The last seq of the device belongs to another stream, so it is not the seq of the last event.
        try await network.on { network in
            network.skip()
            network.pushAll()
        }
        try await eventually { await stream.seq == 3 }
        try await network.on { $0.sayToAll(.lagged(StreamName("s")!, seq: 3, head: 3)) }
        try await eventually { (try? await network.on { $0.subscribes.count }) == 2 }
        let (subscribes, value) = try await network.on { ($0.subscribes, $0.log[2]) }
        #expect(subscribes[0].last == nil)
        let hash = value.withUnsafeBytes { value in
            Array("s".utf8).withUnsafeBytes { FNV1a.record(key: $0, value: value) }
        }
        #expect(subscribes[1].last == ClientFrame.Witness(seq: 2, hash: hash))
        #expect(subscribes[1].position == .after(3))
        await client.close()
    }

    @Test("a device that lagged reads the missed events and is live again") func aDeviceThatLagged() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        try await stream.publish(.insert("m", id: "0")).outcome()
        let other = try network.client(seed: 6)
        let theirs = try await other.open("s")
        try await network.on { $0.isSilent = true }
        for id in 1..<5 { _ = try await theirs.publish(.insert("m", id: "\(id)")).acked() }
        #expect(await stream.seq == 0)
        try await network.on { network in
            network.isSilent = false
            for connection in network.connections { connection.proven = [:] }
            network.sayToAll(.lagged(StreamName("s")!, seq: 0, head: 4))
        }
        try await stream.waitUntil(seq: 4)
        try await theirs.publish(.insert("m", id: "5")).outcome()
        try await stream.waitUntil(seq: 5)
        #expect(try stream.objects("m").count == 6)
        #expect(await stream.digest() == theirs.digest())
        await client.close()
        await other.close()
    }

    @Test("a device gets a snapshot for events that are no longer in the log") func snapshotForTruncatedLog()
        async throws
    {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        try await stream.publish(.insert("m", id: "0")).outcome()
        let other = try network.client(nodes: ["b"], seed: 6)
        let theirs = try await other.open("s")
        try await network.on { $0.kill("a") }
        for id in 1..<5 { try await theirs.publish(.insert("m", id: "\(id)")).outcome() }
        try await network.on { network in
            network.first = 4
            network.requests = []
            network.down = []
        }
        try await stream.waitUntil(seq: 4)
        #expect(try stream.objects("m").count == 5)
        #expect(await stream.digest() == theirs.digest())
        #expect(try await network.on { $0.requests.contains { $0.contains("/snapshot") } })
        try await theirs.publish(.insert("m", id: "5")).outcome()
        try await stream.waitUntil(seq: 5)
        await client.close()
        await other.close()
    }

    @Test("a device takes the ack and the seq of a consumed event from a snapshot") func acksFromSnapshot()
        async throws
    {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        try await stream.publish(.insert("m", id: "0")).outcome()
        try await network.on { ($0.dropsAcks, $0.isSilent) = (true, true) }
        let earlier = try await stream.publish(.insert("m", id: "1"))
        let last = try await stream.publish(.insert("m", id: "2"))
        try await eventually { (try? await network.on { $0.head }) == 2 }
        try await network.on { network in
            network.first = 2
            network.isSilent = false
            for connection in network.connections { connection.end("reset") }
        }
        #expect(try await last.acked() == 2)
        #expect(try await last.outcome() == .consumed(2))
        #expect(try await earlier.acked() == nil)
        #expect(try await earlier.outcome() == .consumed(nil))
        #expect(try stream.objects("m").count == 3)
        await client.close()
    }

    /// Returns the notices of a stream that has found another history.
    private func diverged(_ network: FakeNetwork, _ client: SyncClient, _ stream: SyncStream) async throws {
        var notices = await client.notices().makeAsyncIterator()
        // The node's log may be the wrong one. The answer of the next node decides.
        let error = ReelError(.diverged, "another event stands there")
        try await network.on { network in
            network.refusal = error
            network.sayToAll(.error(ServerFrame.Failure(error, stream: StreamName("s")!)))
        }
        try await stopped(&notices, stream, error)
        try await network.on { $0.refusal = nil }
    }

    private func stopped(
        _ notices: inout SyncNotices.AsyncIterator,
        _ stream: SyncStream,
        _ error: ReelError
    ) async throws {
        while let notice = await notices.next() {
            if case .streamFailed(stream.id, let reason) = notice {
                #expect(reason == "\(error.code.rawValue): \(error.message)")
                return
            }
        }
        throw Wrong()
    }

    /// Publishes three events, folds them, and closes the store.
    private func storeThreeEvents(at path: String, _ network: FakeNetwork) async throws {
        let client = try network.client(store: .file(path))
        let stream = try await client.open("s")
        for id in 0..<3 { try await stream.publish(.insert("m", id: "\(id)")).outcome() }
        await client.close()
    }

    @Test("a stream stops after a restart of the app if its log was restored from a backup")
    func restoredLog() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        try await storeThreeEvents(at: path, network)
        // The last two events are lost, and other devices have written since.
        try await network.on { network in
            network.log.removeLast(2)
            network.streams.removeLast(2)
            for id in 10..<15 { network.author(.insert("m", id: "\(id)")) }
            network.refusal = ReelError(.diverged, "another event stands there")
        }
        let client = try network.client(store: .file(path))
        let stream = try await client.open("s")
        try await eventually { await stream.problems.map(\.code) == [.diverged] }
        try await stream.publish(.insert("m", id: "after"))
        try await eventually { await client.phases("s") == [.failed] }
        #expect(await stream.pendingCount == 1, "it keeps what it made")
        #expect(try stream.confirmed.objects("m").count == 3, "and shows what it has")
        await client.close()
    }

    @Test("a device replaces a wrong folded state with a snapshot")
    func replacesWrongState() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        try await storeThreeEvents(at: path, network)
        // The first event of the log changes, so the device's state is wrong. The last record stays the same. The
        // subscription compares that record.
        try await network.on { network in
            let text = String(decoding: network.log[0], as: UTF8.self).replacing(#""id":"0""#, with: #""id":"9""#)
            network.log[0] = Array(text.utf8)
            for id in 10..<12 { network.author(.insert("m", id: "\(id)")) }
        }
        let client = try network.client(store: .file(path))
        let stream = try await client.open("s")
        try await eventually { try stream.confirmed.object("m", id: "9") != nil }
        #expect(await stream.problems.isEmpty)
        await client.close()
    }

    @Test("a client leaves a node with a lost log for another node") func leavesDivergedNode() async throws {
        let network = try FakeNetwork()
        let client = try network.client(nodes: ["a", "b"])
        let stream = try await client.open("s", from: .beginning)
        try await stream.publish(.insert("m", id: "0")).outcome()
        let error = ReelError(.diverged, "this node's log is another one")
        try await network.on { $0.sayToAll(.error(ServerFrame.Failure(error, stream: StreamName("s")!))) }
        guard case .applied = try await stream.publish(.insert("m", id: "1")).outcome() else { throw Wrong() }
        await client.close()
    }

    @Test("another history stops the stream permanently and keeps its queue") func anotherHistoryStopsThe() async throws
    {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        try await stream.publish(.insert("m", id: "0")).outcome()
        try await diverged(network, client, stream)
        try await stream.publish(.insert("m", id: "1"))
        #expect(await stream.pendingCount == 1, "it keeps what it made")
        #expect(try stream.confirmed.objects("m").count == 1, "and shows what it has")
        // A late frame does not start the stream again.
        try await network.on { network in
            network.sayToAll(.lagged(StreamName("s")!, seq: 0, head: 0))
            let late = ReelError(.truncated, "the log begins at 3")
            network.sayToAll(.error(ServerFrame.Failure(late, stream: StreamName("s")!)))
            network.append(StreamName("s")!, network.log[0])
            network.pushAll()
        }
        // Another stream of the same connection continues. The client has read the earlier frames by then.
        try await client.open("t", from: .beginning).publish(.insert("m", id: "0")).outcome()
        #expect(await stream.seq == 0)
        #expect(try await network.on { $0.subscribes.count { $0.stream == StreamName("s") } } == 2)
        #expect(try await network.on { $0.requests.isEmpty })
        await client.close()
    }

    @Test("a stopped stream starts again in a new epoch") func restartsInNewEpoch() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "0")).outcome()
        try await diverged(network, client, stream)
        let kept = try await stream.publish(.insert("m", id: "1"))
        try await network.on { $0.goOver(to: Epoch(2), lagging: []) }
        guard case .applied = try await kept.outcome() else { throw Wrong() }
        #expect(await stream.epoch == Epoch(2))
        #expect(try stream.objects("m").count == 2)
        await client.close()
    }

    @Test("a late download does not start a stopped stream again") func aDownloadThatComes() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let other = try network.client(nodes: ["b"], seed: 6)
        try await other.open("s", from: .beginning).publish(.insert("m", id: "0")).outcome()
        try await network.on { ($0.holdsAnswers, $0.heldPauses) = (true, [StreamSync.answerMs]) }
        let stream = try await client.open("s")
        try await eventually {
            (try? await network.on { !$0.heldAnswers.isEmpty && $0.connections.count == 2 }) == true
        }
        var notices = await client.notices().makeAsyncIterator()
        let error = ReelError(.badStream, "no stream has this name")
        try await network.on { $0.sayToAll(.error(ServerFrame.Failure(error, stream: StreamName("s")!))) }
        try await stopped(&notices, stream, error)
        try await network.on { $0.answerHeld() }
        try await client.open("t", from: .beginning).publish(.insert("m", id: "0")).outcome()
        #expect(await stream.seq == -1)
        #expect(try stream.objects("m").isEmpty)
        #expect(
            try await network.on { $0.subscribes.filter { $0.stream == StreamName("s") }.count } == 1,
            "the other's"
        )
        await client.close()
        await other.close()
    }

    @Test("a client does not repeat a fetch while its answer arrives in parts") func fetchInParts() async throws {
        let network = try FakeNetwork()
        let (other, _) = try await network.author(of: 6, on: "b")
        try await network.on { network in
            network.heldPauses = Set((0...StreamSync.answerDoublings).map { StreamSync.answerMs << Int64($0) })
            network.dropsFetches = true
        }
        let client = try network.client()
        let stream = try await client.open("s", from: .latest)
        try await eventually { (try? await network.on { $0.fetches.count }) == 1 }
        for seq in 0..<4 {
            try await network.on { network in
                let before = network.deadlines.count
                let piece = network.events(StreamName("s")!, Seq(seq), Seq(seq))
                for connection in network.connections where connection.node == "a" {
                    connection.say(.events(piece), ref: Array(#""f""#.utf8))
                }
                // The deadline that existed before this part passes.
                network.fireDeadlines(before)
            }
            try await eventually { await stream.seq == Seq(seq) }
        }
        #expect(try await network.on { $0.fetches.count } == 1, "it goes on")
        try await network.on { $0.fireDeadlines($0.deadlines.count) }
        #expect(try await network.on { $0.fetches } == [[0...5], [4...5]], "nothing has come for too long")
        await client.close()
        await other.close()
    }
}
