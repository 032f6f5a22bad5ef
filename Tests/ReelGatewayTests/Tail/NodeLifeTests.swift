import EventLogConformance
import Foundation
import ReelBase
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests a gateway among other nodes: its departure, and its requests to other nodes.
@Suite(.timeLimit(.minutes(15))) struct NodeLifeTests {
    let todo = StreamName("todo")!

    @Test("clients are sent away before it ends") func clientsAreSentAway() async throws {
        let log = NeighbourLog(try MemoryLog(), advertised: "https://b.example")
        let live = try LiveGateway(log) { $0.node.announceMs = 20 }
        let sockets = [try await live.connect(), try await live.connect()]
        try await live.cluster(contains: "b.example")
        try await eventually("a welcome names the other gateway too") {
            let socket = try await live.open()
            socket.send(#"{"t":"hello","client":"test/1"}"#)
            let frame = try await socket.next { if case .welcome = $0.body { true } else { false } }
            guard case .welcome(let welcome) = frame.body else { return false }
            socket.close()
            return welcome.nodes == ["https://b.example"]
        }
        live.gateway.end.begin()
        var moments: [Int64] = []
        for socket in sockets {
            let frame = try await socket.next { if case .goaway = $0.body { true } else { false } }
            guard case .goaway(let afterMs, let nodes) = frame.body else { return }
            #expect(nodes == ["https://b.example"])
            moments.append(afterMs)
            #expect(try await socket.closeCode() == 1012)
        }
        #expect(Set(moments).count == 2, "each client has a moment of its own")
        await live.gateway.waitUntilEnded()
        await live.end()
    }

    @Test("a client that stays hears of a gateway that is announced later, once")
    func laterGateway() async throws {
        let log = try MemoryLog()
        try await LiveGateway.with(log, { $0.node.announceMs = 20 }) { live in
            let (socket, old) = (try await live.open(), try await live.connect())
            socket.send(#"{"t":"hello","client":"test/1","nodes":true}"#)
            let isNodes = { @Sendable (frame: ServerFrame) in if case .nodes = frame.body { true } else { false } }
            let welcome = try await socket.next { if case .welcome = $0.body { true } else { false } }
            guard case .welcome(let said) = welcome.body else { return }
            #expect(said.nodes.isEmpty)
            for name in ["b", "c"] {
                try log.announce(
                    NodeAnnouncement(
                        id: name,
                        role: "gateway",
                        url: "http://127.0.0.1:1",
                        advertised: "https://\(name).example",
                        build: "0",
                        positions: [],
                        atMs: WallClock.nowMs()
                    )
                )
                let frame = try await socket.next(isNodes)
                guard case .nodes(let nodes) = frame.body else { return }
                #expect(
                    Set(nodes) == (name == "b" ? ["https://b.example"] : ["https://b.example", "https://c.example"])
                )
                #expect(!socket.heard.contains(where: isNodes))
            }
            #expect(!old.heard.contains(where: isNodes), "it did not say that it takes such a frame")
        }
    }

    /// Returns true if the log's list shows that the node has left; nil if the node is not listed.
    private func hasLeft(_ id: String, _ log: MemoryLog) throws -> Bool? {
        try log.nodes().first { $0.id == id }?.hasLeft
    }

    @Test("a gateway announces its departure and, after a restart, its return") func announcesDeparture() async throws {
        let log = try MemoryLog()
        let other = try LiveGateway(log) { ($0.node.id, $0.node.announceMs) = ("b", 20) }
        for _ in 0..<2 {
            let live = try LiveGateway(log) { $0.node.id = "a" }
            try await eventually("it is there") { try hasLeft("a", log) == false }
            try await eventually("the other one shows it as one that is there") {
                try await other.cluster("a").map { $0["left"] == nil && $0["age_ms"] is Int } ?? false
            }
            live.gateway.end.begin()
            await live.gateway.waitUntilEnded()
            #expect(try hasLeft("a", log) == true, "it does not end before that is in the log")
            try await eventually("the other one shows that it left") {
                try await other.cluster("a")?["left"] as? Bool == true
            }
            await live.end()
        }
        await other.end()
        log.close()
    }

    @Test("a client is not closed before what was taken from it is acked") func aClientIsNot() async throws {
        let log = try MemoryLog()
        let live = try LiveGateway(log) {
            $0.node.drainSpreadMs = 0
            $0.node.drainLimitMs = 60_000
        }
        let (writer, other) = (try await live.connect(), try await live.connect())
        log.onAppend { _, _ in .late }
        writer.send(.publish(.init(stream: todo, events: [Sent.insert(Site(high: 1, low: 1), 0, "a")])))
        try await live.log(holds: 0, in: todo.partition(of: log.partitions))
        live.gateway.end.begin()
        // The same tick looks at both sockets at the same time.
        #expect(try await other.closeCode() == 1012)
        log.answerLate()
        #expect(try await writer.nextAck().acks.map(\.op) == [0])
        #expect(try await writer.closeCode() == 1012)
        await live.gateway.waitUntilEnded()
        await live.end()
        log.close()
    }

    @Test("the readiness answer reports the position of each partition") func reportsPartitionPositions() async throws {
        try await LiveGateway.with(try MemoryLog(partitions: 2)) { live in
            let ready = try await live.get("/readyz")
            #expect(ready.status == 200)
            let body = String(decoding: ready.body, as: UTF8.self)
            #expect(body.hasPrefix(#"{"ready":true,"leaving":false,"log":"ok","epoch":"\#(live.log.epoch)","#))
            #expect(
                body.hasSuffix(
                    #""roles":[{"role":"gateway","ready":true,"behind":false,"log":"ok","partitions":"#
                        + #"[{"partition":0,"ready":true,"seq":-1,"goal":-1},"#
                        + #"{"partition":1,"ready":true,"seq":-1,"goal":-1}]}]}"#
                ),
                "\(body)"
            )
            #expect(try await live.get("/healthz").status == 200)
            let metrics = try await live.get("/metrics")
            #expect(metrics.headers["content-type"]?.hasPrefix("text/plain") == true)
            #expect(String(decoding: metrics.body, as: UTF8.self).contains("# TYPE reel_gateway_acks_total counter"))
        }
    }

    /// A snapshot node that answers every request with the same bytes. Requests to the host `localhost` get 503, so the
    /// node never answers under that name.
    final class Answerer: HTTPHandler {
        let body: [UInt8]

        init(_ body: [UInt8]) { self.body = body }

        func respond(to request: HTTPRequest, _ exchange: HTTPExchange) {
            guard request.head.headers["host"]?.hasPrefix("localhost") == false else {
                return exchange.respond(HTTPResponse(status: 503))
            }
            exchange.start(
                status: 200,
                headers: ["content-type": "application/x-ndjson", "etag": Self.tag(of: request.head.target)]
            )
            for start in stride(from: 0, to: body.count, by: 100_000) {
                exchange.write(Array(body[start..<min(start + 100_000, body.count)]))
            }
            exchange.end()
        }

        /// Returns the tag that the snapshot node gives an answer; it is a hash of the request's target.
        static func tag(of target: String) -> String {
            "\"\(Hex64.text(FNV1a.record(StreamName("todo")!, Array(target.utf8)))):0\""
        }

        func upgrade(_ offer: WebSocketOffer) -> WebSocketDecision { .refuse(HTTPResponse(status: 404)) }
        func refusal(of violation: HTTPViolation) -> HTTPResponse { HTTPResponse(status: violation.status) }
    }

    @Test("state is passed on from a snapshot node that answers") func stateIsPassedOn() async throws {
        let log = try MemoryLog()
        let loop = try EventLoop()
        defer {
            loop.stop()
            loop.join()
        }
        let body = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
        let (server, address) = try loop.sync {
            let server = HTTPServer(on: loop, .patient, handler: Answerer(body))
            return (LoopBound(server, on: loop), try server.listen(on: try SocketAddress("127.0.0.1", port: 0)))
        }
        let behind = "http://localhost:\(address.port)"
        for (id, url) in [
            ("dead", "http://127.0.0.1:1"), ("odd", "nothing"), ("behind", behind), ("live", "http://\(address)"),
        ] {
            try log.announce(
                NodeAnnouncement(
                    id: id,
                    role: "snapshot",
                    url: url,
                    advertised: nil,
                    build: "0",
                    positions: [],
                    atMs: WallClock.nowMs()
                )
            )
        }
        try await LiveGateway.with(log, { $0.node.announceMs = 20 }) { live in
            try await live.cluster(contains: "live")
            // Targets of clients, each with the target with which the gateway asks the node.
            for (target, asked) in [
                ("/v1/streams/todo/snapshot", "/v1/streams/todo/snapshot"),
                ("/v1/streams/todo/objects/a%2Fb/c?", "/v1/streams/todo/objects?model=a%2Fb&id=c"),
            ] {
                for _ in 0..<4 {
                    let answer = try await live.get(target)
                    #expect(answer.status == 200 && answer.body == body)
                    #expect(answer.headers["etag"] == Answerer.tag(of: asked))
                }
            }
        }
        loop.execute { server.value.close() }
    }
}

extension LiveGateway {
    /// Returns the entry of a node in the list of nodes; nil if the node is not listed.
    fileprivate func cluster(_ id: String) async throws -> [String: Any]? {
        let cluster = try JSONSerialization.jsonObject(with: Data(try await get("/v1/cluster").body)) as? [String: Any]
        return (cluster?["nodes"] as? [[String: Any]])?.first { $0["id"] as? String == id }
    }
}
