import EventLogConformance
import Foundation
import NodeTestSupport
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import ReelSnapshot
import Synchronization
import TestSupport
import Testing

@testable import ReelGateway

/// Tests that old events come from a snapshot node's index, or from the log if no node answers.
@Suite(.timeLimit(.minutes(15))) struct SnapshotEventsClientTests {
    private let count = 40_000
    private let distance = 25
    private let streams = (0..<4).map { StreamName("sparse\($0)")! }

    /// Returns the seqs of the events of one of the streams.
    private func seqs(of stream: Int) -> [Seq] {
        stride(from: stream * distance + distance / 2, to: count, by: distance * streams.count).map { Seq($0) }
    }

    /// Waits until each loop of the gateway knows a node that it can ask and that has read up to `head`.
    private func knowsANode(_ live: LiveGateway, at head: Seq) async throws {
        let query = LogQuery(
            stream: streams[0],
            partition: 0,
            from: head - SnapshotEventsClient.distance,
            to: head,
            bytes: 1,
            events: 1
        )
        for part in live.gateway.parts {
            try await eventually("it knows a node") {
                try await part.loop.run { part.value.gateway.snapshotEvents?.node(for: query) != nil }
            }
        }
    }

    @Test("it is not scanned for in the log") func itIsNotScanned() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "reel-index-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let keys = try KeyFile()
        let memory = try await MemoryLog.sparse(count, streams, every: distance)
        let key = Array(StreamName.barrierKey.utf8)
        // The witness of the new records is the last record, so a starting gateway need not read earlier ones.
        let before = try #require(memory.read(0, from: Seq(count - 1), to: Seq(count - 1), bytes: 1).entries.first)
        let last = try memory.read(0, from: Seq(count - 1), to: Seq(count - 1), bytes: 1).witness(of: before)
        memory.append([LogAppend(key: key, value: Barrier.open.value, witness: last)], to: 0) { _ in }
        let value = Batches.value(Site(high: 1, low: 1), Op(count), "x", base: -1)
        let records = (0..<count / 4).map { _ in LogAppend(key: Array("busy".utf8), value: value, witness: last) }
        memory.append(records, to: 0) { _ in }
        let head = Seq(count + count / 4)
        var common = NodeSettings.forTests
        (common.announceMs, common.tokens) = (20, keys.gate)
        let node = try SnapshotServer(log: memory, settings: SnapshotSettings(folder: folder), common: common)
        let log = HeldLog(memory)
        try await LiveGateway.with(
            log,
            {
                $0.warmRecords = 1
                ($0.node.announceMs, $0.node.tokens) = (20, keys.gate)
            }
        ) { live in
            try await knowsANode(live, at: head)
            let reads = log.rangesRead.count
            let token = try keys.token(publish: "*")
            let socket = try await live.open()
            socket.send(.hello(.init(client: "test/1", token: token)))
            _ = try await socket.next { if case .welcome = $0.body { true } else { false } }
            for stream in streams { socket.send(.subscribe(.init(stream: stream, position: .after(-1)))) }
            let found = try await socket.events(of: streams, to: head)
            for (index, stream) in streams.enumerated() {
                #expect(found[stream] == seqs(of: index) + [Seq(count)], "with the barrier")
            }
            let (read, indexed) = (log.rangesRead[reads...].reduce(0) { $0 + $1.count }, "source=\"snapshot\"")
            #expect(read < 2 * Int(SnapshotEventsClient.distance), "the rest is near enough")
            func counted() async throws -> Int {
                try await live.metric("reel_gateway_caught_up_events_total{\(indexed)}") ?? 0
            }
            #expect(try await counted() > count / distance / 2)
            let before = try await counted()
            for (models, wanted) in [("task", seqs(of: 1) + [Seq(count)]), ("none", [Seq(count)])] {
                let target = "/v1/streams/\(streams[1])/events?limit=10000&models=\(models)"
                let answer = try await live.ask("GET", target, headers: ["authorization": "Bearer \(token)"])
                let message = MessageReader.Message(data: String(decoding: answer.body, as: UTF8.self))
                #expect(message.seqs == wanted.map(Int.init))
            }
            #expect(try await counted() > before)
            #expect(live.logLines("a snapshot node has no events").isEmpty)
        }
        node.end.begin()
        await node.waitUntilEnded()
    }

    // MARK: Faulty nodes

    /// Returns the events of these streams from a gateway with this node beside it.
    private func read(
        _ wanted: [StreamName],
        beside node: FakeNode,
        indexMs: Int64 = 1_000_000,
        _ check: (LiveGateway) async throws -> Void
    ) async throws {
        let memory = try await MemoryLog.sparse(count, streams, every: distance)
        let log = NeighbourLog(memory, node.announcement(as: "fake", head: Seq(count - 1)))
        try await LiveGateway.with(
            log,
            {
                ($0.warmRecords, $0.indexMs) = (1, indexMs)
                $0.node.announceMs = 20
            }
        ) { live in
            try await knowsANode(live, at: Seq(count - 1))
            let socket = try await live.connect()
            for stream in wanted { socket.send(.subscribe(.init(stream: stream, position: .after(-1)))) }
            let found = try await socket.events(of: wanted, to: Seq(count - 1))
            for (index, stream) in streams.enumerated() where wanted.contains(stream) {
                #expect(found[stream] == seqs(of: index))
            }
            try await check(live)
        }
    }

    @Test("a snapshot node that hangs delays no client and is rarely asked again") func hangingNodeDelaysNothing()
        async throws
    {
        let node = try FakeNode(nil)
        let start = ContinuousClock.now
        let wanted = streams + (0..<50).map { StreamName("empty\($0)")! }
        try await read(wanted, beside: node, indexMs: 300) { live in
            // After ten seconds the gateway may ask the node as many times as at first.
            let turns = Int((ContinuousClock.now - start) / .seconds(10)) + 1
            let asked = try node.asked
            #expect(asked >= 1 && asked <= 8 * turns)
            try await eventually("it is said") { !live.logLines("a snapshot node has no events").isEmpty }
            #expect(try await live.metric(#"reel_gateway_caught_up_events_total{source="snapshot"}"#) == 0)
        }
    }

    private func answer(_ body: String, status: Int = 200) -> HTTPResponse {
        HTTPResponse(status: status, headers: ["content-type": "application/json"], body: Array(body.utf8))
    }

    private func body(_ stream: String = "sparse0", epoch: Epoch, _ rest: String) -> String {
        #"{"stream":"\#(stream)","epoch":"\#(epoch)","partition":0,\#(rest)}"#
    }

    @Test("the gateway ignores an invalid answer of a snapshot node", arguments: 0..<10) func ignoresInvalidAnswer(
        _ turn: Int
    )
        async throws
    {
        let epoch = try MemoryLog(partitions: 1).epoch
        let site = Site(high: 1, low: 1)
        let event = #"{"seq":9,"# + String(decoding: Batches.value(site, 9, "x").dropFirst(), as: UTF8.self)
        let answers = [
            answer("{}", status: 404), answer(#"{"code":"node_behind"}"#, status: 503),
            answer(#"{"code":"truncated","first":30000}"#, status: 410), answer("no JSON"),
            answer(body("other", epoch: epoch, #""from":0,"head":9,"events":[],"to":39999"#)),
            answer(body(epoch: Epoch(7), #""from":0,"head":9,"events":[],"to":39999"#)),
            answer(body(epoch: epoch, #""from":1,"head":9,"events":[],"to":39999"#)),
            answer(body(epoch: epoch, #""from":0,"head":9,"events":[],"to":-1"#)),
            answer(body(epoch: epoch, #""from":0,"head":9,"events":[\#(event)],"to":8"#)),
            answer(body(epoch: epoch, #""from":0,"head":9,"events":[\#(event),\#(event)],"to":39999"#)),
        ]
        let node = try FakeNode(answers[turn])
        try await read(Array(streams.prefix(1)), beside: node) { live in
            let asked = try node.asked
            let counted = try await live.metric(#"reel_gateway_caught_up_events_total{source="snapshot"}"#)
            #expect(asked >= 1 && counted == 0)
        }
    }

    @Test("an answer is cut where it has more than is wanted") func anAnswerIsCut() throws {
        let epoch = Epoch(7)
        let site = Site(high: 1, low: 1)
        let values = [5, 9, 12].map { Batches.value(site, Op($0), "x") }
        let events = zip([5, 9, 12], values).map { seq, value in
            #"{"seq":\#(seq),"# + String(decoding: value.dropFirst(), as: UTF8.self)
        }
        let text = body("s", epoch: epoch, #""from":3,"head":90,"events":[\#(events.joined(separator: ","))],"to":70"#)
        func chunk(
            to: Seq = 60,
            bytes: Int = 1 << 20,
            events: Int = .max,
            models: [String]? = nil
        ) throws -> EventRange {
            let query = LogQuery(
                stream: StreamName("s")!,
                filter: models.map { EventFilter(models: $0, site: nil) },
                partition: 0,
                from: 3,
                to: to,
                bytes: bytes,
                events: events
            )
            return try EventRange(answer: Array(text.utf8), to: query, epoch: epoch)
        }
        func range(_ chunk: EventRange) -> [Seq] { [chunk.from, chunk.to, Seq(chunk.count)] }
        #expect(try range(chunk()) == [3, 60, 3])
        #expect(try String(decoding: chunk().body, as: UTF8.self) == events.joined(separator: ","))
        #expect(try range(chunk(to: 80)) == [3, 70, 3])
        #expect(try range(chunk(to: 9)) == [3, 9, 2])
        #expect(try range(chunk(events: 2)) == [3, 11, 2])
        #expect(try range(chunk(bytes: 1)) == [3, 8, 1])
        #expect(try range(chunk(models: ["task"])) == [3, 60, 3])
        #expect(try range(chunk(models: ["none"])) == [3, 60, 0])
    }
}
