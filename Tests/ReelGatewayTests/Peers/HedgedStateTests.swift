import EventLogConformance
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests that a gateway asks another snapshot node, for each kind of question, if one hangs or cannot answer.
@Suite(.timeLimit(.minutes(15))) struct HedgedStateTests {
    private func with(
        _ nodes: [FakeNode],
        hedgeMs: Int64 = 1_000_000,
        loops: Int = 1,
        _ body: (LiveGateway) async throws -> Void
    ) async throws {
        let log = try MemoryLog(partitions: 1)
        for (index, node) in nodes.enumerated() { try log.announce(node.announcement(as: "node-\(index)")) }
        try await LiveGateway.with(
            log,
            {
                ($0.node.announceMs, $0.node.loops, $0.hedgeMs) = (20, loops, hedgeMs)
            }
        ) { live in
            try await eventually("the gateway knows them") {
                let known = String(decoding: try await live.get("/v1/cluster").body, as: UTF8.self)
                return known.matches(of: /node-/).count == nodes.count
            }
            try await body(live)
        }
    }

    /// Sends each kind of question about state `times` times.
    private func ask(_ live: LiveGateway, times: Int = 1) async throws -> [HTTPResponse] {
        let (path, epoch) = ("/v1/streams/todo", live.log.epoch)
        let acks = #"{"epoch":"\#(epoch)","acks":[{"site":"\#(Site(high: 1, low: 1))","op":0,"seq":0}]}"#
        let questions = [
            ("GET", "/snapshot", ""), ("GET", "/delta?after=0&epoch=\(epoch)", ""), ("GET", "/objects/task/1", ""),
            ("GET", "/sites", ""), ("POST", "/outcomes", acks), ("HEAD", "/snapshot", ""),
        ]
        var answers: [HTTPResponse] = []
        for _ in 0..<times {
            for (method, target, body) in questions {
                // Each question has a connection of its own, so that the questions reach all loops of the gateway.
                let headers: HTTPHeaders = ["connection": "close"]
                answers.append(try await live.ask(method, path + target, body: body, headers: headers))
            }
        }
        return answers
    }

    private func behind(_ seq: Seq) -> HTTPResponse {
        var problem = Problem(.nodeBehind, "folded to \(seq)")
        problem.seq = seq
        return problem.response
    }

    private static func refusal(_ status: Int, _ body: [UInt8]) -> HTTPResponse {
        HTTPResponse(status: status, headers: ["content-type": "application/problem+json"], body: body)
    }

    private let whole = HTTPResponse(
        status: 200,
        headers: ["content-type": "application/x-ndjson"],
        body: Array("whole".utf8)
    )

    @Test("a node that hangs holds up one question for a moment, on whatever loop, and is asked last from then on")
    func hungNode() async throws {
        let (hung, well) = (try FakeNode(nil), try FakeNode(whole))
        let start = ContinuousClock.now
        try await with([hung, well], hedgeMs: 50, loops: 2) { live in
            let answers = try await ask(live, times: 4)
            #expect(answers.allSatisfy { $0.status == 200 })
            // The gateway may ask the silent node again after a while. A second loop may also ask it at the same moment
            // as the first, before it knows of the silence.
            let turns = Int((ContinuousClock.now - start) / .milliseconds(PeerRecord.silentMs)) + 1
            let asked = try hung.asked
            #expect(asked >= 1 && asked <= 2 * turns, "asked \(asked) times of \(answers.count)")
            try await eventually("what it was asked is cancelled") { try hung.broken() == asked }
            try await eventually("it is said") { !live.logLines("a snapshot node does not answer").isEmpty }
        }
    }

    @Test("where all nodes hang, few questions are asked twice")
    func allHang() async throws {
        let nodes = [try FakeNode(nil), try FakeNode(nil)]
        let questions = 40
        try await with(nodes, hedgeMs: 20) { live in
            var readers: [Any] = []
            for _ in 0..<questions { readers.append(try live.reader("/v1/streams/todo/snapshot")) }
            let most = questions + PeerRecord.hedgesMax + questions / PeerRecord.questionsPerHedge
            try await eventually("those that may be asked twice are") {
                try nodes.reduce(0) { $0 + (try $1.asked) } >= questions + PeerRecord.hedgesMax
            }
            // Every further question was due before this timer of the same loop.
            let part = live.gateway.parts[0]
            await withCheckedContinuation { done in
                part.loop.execute { _ = part.loop.timer(after: .milliseconds(200)) { done.resume() } }
            }
            #expect(try nodes.reduce(0) { $0 + (try $1.asked) } <= most)
            withExtendedLifetime(readers) {}
        }
    }

    @Test("a node that has not folded all yet is not asked for long where another one has, whatever is asked")
    func nodeBehind() async throws {
        let (late, well) = (try FakeNode(behind(5)), try FakeNode(whole))
        let start = ContinuousClock.now
        try await with([late, well]) { live in
            let answers = try await ask(live, times: 5)
            #expect(answers.allSatisfy { $0.status == 200 })
            let turns = Int((ContinuousClock.now - start) / .milliseconds(PeerRecord.refusedMs)) + 1
            #expect(try well.asked == answers.count)
            #expect(try late.asked <= turns, "it is asked first once, and then after the other one")
        }
    }

    @Test(
        "a node for which the log has lost something is not believed where another one answers",
        arguments: ["ahead_of_log", "diverged"]
    )
    func loss(code: String) async throws {
        let body = Array(#"{"code":"\#(code)","detail":"found a loss"}"#.utf8)
        let (lost, well) = (try FakeNode(Self.refusal(409, body)), try FakeNode(whole))
        try await with([lost, well]) { live in
            for _ in 0..<4 {
                let answer = try await live.get("/v1/streams/todo/snapshot")
                #expect(answer.status == 200)
            }
            let asked = try lost.asked
            #expect(asked > 0)
        }
    }

    @Test("that the epoch has changed is passed on, and no other node is asked")
    func otherEpoch() async throws {
        let body = Array(#"{"code":"epoch_changed","detail":"found another epoch"}"#.utf8)
        let nodes = try (0..<2).map { _ in try FakeNode(Self.refusal(409, body)) }
        try await with(nodes) { live in
            let answer = try await live.get("/v1/streams/todo/snapshot")
            #expect(answer.status == 409 && String(decoding: answer.body, as: UTF8.self).contains("epoch_changed"))
            let asked = try nodes.map { try $0.asked }.reduce(0, +)
            #expect(asked == 1)
        }
    }

    @Test("a client receives the answer of the furthest node when all nodes lag")
    func allNodesLag() async throws {
        let nodes = try [5, 90, -1].map { try FakeNode(behind($0)) }
        try await with(nodes) { live in
            for answer in try await ask(live, times: 3) {
                #expect(answer.status == 503 && answer.headers["retry-after"] == "1")
                #expect(answer.headers["content-type"] == "application/problem+json")
                // The answer to HEAD has no body.
                let text = String(decoding: answer.body, as: UTF8.self)
                #expect(text.isEmpty || text.contains("folded to 90"), "\(text)")
            }
            #expect(try nodes.map { try $0.asked } == [18, 18, 18])
        }
    }
}
