import NodeTestSupport
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelSnapshot

/// Tests a node that has folded only a part of the records that its log held at the start.
@Suite(.timeLimit(.minutes(5)))
struct IncompleteStateTests {
    /// Returns a log of 20 events, of which the node has folded 10. Its tail delivers nothing
    /// until the test resumes it.
    private func part() async throws -> Lab {
        let lab = try Lab(partitions: 1)
        var writer = Writer(seed: 1)
        try await lab.log.append((0..<10).map { writer.event(at: $0) }, key: "todo", to: 0)
        let node = try lab.node()
        try await lab.reach(node, 0, 9)
        node.close()
        try await lab.log.append((10..<20).map { writer.event(at: $0) }, key: "todo", to: 0)
        lab.log.stall(0)
        return lab
    }

    /// Runs `body` with a node that listens, and with a function that sends it a request.
    private func with(
        _ lab: Lab,
        _ body: (_ ask: (String, [UInt8]) async throws -> HTTPResponse) async throws -> Void
    ) async throws {
        var settings = lab.settings
        settings.reachMs = 20
        let node = try SnapshotServer(
            log: lab.log,
            settings: settings,
            common: .forTests,
            logger: Logger(threshold: .error)
        )
        let loop = try EventLoop()
        let http = try loop.sync { LoopBound(HTTPClient(on: loop), on: loop) }
        let (host, port) = (node.address.host, node.address.port)
        try await body { target, sent in
            let method = sent.isEmpty ? "GET" : "POST"
            var request = HTTPClientRequest(method, host: host, port: port, target: target, body: sent)
            request.timeout = .seconds(1_000)
            return try await http.fetch(request)
        }
        for _ in 0..<2 { node.end.begin() }
        await node.waitUntilEnded()
        loop.stop()
        loop.join()
    }

    /// Waits until the node has compared its file with the log. The file's seq is in the health before that, the log's
    /// end is not.
    private func compared(_ ask: (String, [UInt8]) async throws -> HTTPResponse) async throws {
        try await eventually("the file is compared") {
            try await text(ask("/readyz", [])).contains(#""seq":9,"goal":19"#)
        }
    }

    private func text(_ answer: HTTPResponse) -> String { String(decoding: answer.body, as: UTF8.self) }

    @Test("a snapshot node never answers with partial state, and its refusal reports the node's progress")
    func refusesPartialState() async throws {
        let lab = try await part()
        let todo = "/v1/streams/todo"
        try await with(lab) { ask in
            try await compared(ask)
            #expect(try await ask("/readyz", []).status == 503)
            for target in [
                "snapshot", "delta?after=3&epoch=\(lab.log.epoch)", "objects/task/1", "objects?model=task&id=1",
                "sites",
            ] {
                let answer = try await ask("\(todo)/\(target)", [])
                #expect(answer.status == 503, "\(target): \(text(answer))")
                #expect(text(answer).contains(#""code":"node_behind""#), "\(target)")
                #expect(text(answer).contains(#""seq":9,"goal":19"#), "\(target): \(text(answer))")
                #expect(text(answer).contains("(50 % are done)"), "\(target)")
                #expect(answer.headers["retry-after"] == "1", "\(target)")
            }
            lab.log.resume(0)
            try await eventually("all is folded") { try await ask("/readyz", []).status == 200 }
            #expect(try await text(ask("\(todo)/snapshot", [])).contains(#""seq":19"#))
        }
    }

    @Test("a fold that stops for good in a partition that was empty at the start is refused, with the reason")
    func stoppedAfterNothing() async throws {
        let lab = try Lab(partitions: 1)
        try await with(lab) { ask in
            try await eventually("it is ready") { try await ask("/readyz", []).status == 200 }
            var writer = Writer(seed: 1)
            try await lab.log.append((0..<3).map { writer.event(at: $0) }, key: "todo", to: 0)
            try await lab.log.append([#"{"fold":9,"type":"barrier"}"#], key: "~reel", to: 0)
            try await eventually("the fold has stopped") { try await ask("/readyz", []).status == 503 }
            for target in ["snapshot", "delta?after=0&epoch=\(lab.log.epoch)", "objects/task/1", "sites"] {
                let answer = try await ask("/v1/streams/todo/\(target)", [])
                #expect(answer.status == 503 && text(answer).contains(#""code":"node_behind""#), "\(text(answer))")
                #expect(text(answer).contains("folded to seq 2; folding has stopped: internal"), "\(text(answer))")
            }
        }
    }

    @Test("a client that names a bound gets what is true of it")
    func bounded() async throws {
        let lab = try await part()
        let (todo, epoch) = ("/v1/streams/todo", "epoch=\(lab.log.epoch)")
        try await with(lab) { ask in
            try await compared(ask)
            for target in ["snapshot?\(epoch)", "delta?after=3&\(epoch)", "sites?\(epoch)"] {
                #expect(try await ask("\(todo)/\(target)&min_seq=9", []).status == 200, "\(target)")
                let beyond = try await ask("\(todo)/\(target)&min_seq=10", [])
                #expect(beyond.status == 503 && text(beyond).contains(#""seq":9,"goal":10"#), "\(text(beyond))")
            }
        }
    }

    @Test("a snapshot node returns an outcome only after it has folded the event")
    func outcomeAfterFold() async throws {
        let lab = try await part()
        func question(_ seqs: Seq...) throws -> [UInt8] {
            let acks = try seqs.map { seq in
                let batch = try lab.log.read(0, from: seq, to: seq, bytes: 1)
                let entry = try #require(batch.entry(at: seq))
                let author = batch.withRecord(entry) { _, value in EventIntake.author(of: value) }
                let (site, op) = try #require(author)
                return #"{"site":"\#(site)","op":\#(op),"seq":\#(seq)}"#
            }
            return Array(#"{"epoch":"\#(lab.log.epoch)","acks":[\#(acks.joined(separator: ","))]}"#.utf8)
        }
        try await with(lab) { ask in
            try await compared(ask)
            #expect(try await ask("/v1/streams/todo/outcomes", question(9)).status == 200)
            let early = try await ask("/v1/streams/todo/outcomes", question(9, 10))
            #expect(early.status == 503 && text(early).contains(#""goal":10"#), "\(text(early))")
        }
    }

    @Test("a full disk or an outage of the log makes the same state no part")
    func resumed() async throws {
        let lab = try Lab(partitions: 1)
        var writer = Writer(seed: 1)
        try await lab.log.append((0..<10).map { writer.event(at: $0) }, key: "todo", to: 0)
        let node = try lab.node()
        defer { node.close() }
        try await lab.reach(node, 0, 9)
        lab.log.stall(0)
        try await lab.log.append((10..<20).map { writer.event(at: $0) }, key: "todo", to: 0)
        lab.log.lose(0, LogError(.logUnavailable, "nobody answers"))
        try await eventually("the log is away") { !node.problems.isEmpty }
        #expect(node.health.isReady, "an outage of the log makes nobody unready")
        lab.log.lose(0, nil)
        try await eventually("the log is back") { node.problems.isEmpty || node.positions == [9] }
        let question = StateRequest(.snapshot(epoch: nil), of: StreamName("todo")!)
        #expect(node.canAnswer(question))
    }
}
