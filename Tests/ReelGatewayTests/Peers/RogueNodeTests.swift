import EventLogConformance
import ReelBase
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests a server in the node list that is no snapshot node. A gateway forwards only answers
/// that a snapshot node can give.
@Suite(.timeLimit(.minutes(15))) struct RogueNodeTests {
    private func with(
        _ urls: [String],
        epoch: Epoch? = nil,
        _ change: (inout GatewaySettings) -> Void = { _ in },
        _ body: (LiveGateway) async throws -> Void
    ) async throws {
        let log = try MemoryLog(partitions: 1)
        for (index, url) in urls.enumerated() {
            try log.announce(
                NodeAnnouncement(
                    id: "node-\(index)",
                    role: "snapshot",
                    url: url,
                    advertised: nil,
                    build: "0",
                    positions: [.init(partition: 0, seq: largestInteger)],
                    atMs: WallClock.nowMs()
                )
            )
        }
        try await LiveGateway.with(
            log,
            {
                $0.node.announceMs = 20
                change(&$0)
            }
        ) { live in
            try await eventually("the gateway knows them") {
                let known = String(decoding: try await live.get("/v1/cluster").body, as: UTF8.self)
                return known.matches(of: /"id":"node-/).count == urls.count
            }
            try await body(live)
        }
    }

    private func url(_ server: RogueServer) -> String { "http://127.0.0.1:\(server.port)" }

    private static let json = "content-type: application/json"
    private static let lines = "content-type: application/x-ndjson"

    /// Answers that no snapshot node gives, each with the name of its fault.
    static let wrong: [(name: String, answer: String)] = [
        ("101", "HTTP/1.1 101 Switching Protocols\ntransfer-encoding: chunked\n\n5\nhello\n0\n\n"),
        ("204", "HTTP/1.1 204 No Content\ncontent-length: 5\n\nhello"),
        ("206", "HTTP/1.1 206 Partial Content\n\(lines)\ncontent-length: 5\n\nhello"),
        ("redirect", "HTTP/1.1 302 Found\nlocation: https://evil.example/\ncontent-length: 0\n\n"),
        ("304 unasked", "HTTP/1.1 304 Not Modified\netag: \"00000000000000a1:4\"\n\n"),
        ("405", "HTTP/1.1 405 Method Not Allowed\ncontent-type: application/problem+json\ncontent-length: 2\n\n{}"),
        ("418", "HTTP/1.1 418 Teapot\ncontent-type: application/problem+json\ncontent-length: 2\n\n{}"),
        ("html", "HTTP/1.1 200 OK\ncontent-type: text/html\ncontent-length: 5\n\nhello"),
        ("svg", "HTTP/1.1 200 OK\ncontent-type: image/svg+xml\ncontent-length: 5\n\nhello"),
        ("no type", "HTTP/1.1 200 OK\ncontent-length: 5\n\nhello"),
        ("two types", "HTTP/1.1 200 OK\n\(json)\ncontent-type: text/html\ncontent-length: 5\n\nhello"),
        ("html in a 500", "HTTP/1.1 500 Oops\ncontent-type: text/html\ncontent-length: 5\n\nhello"),
        ("html in a 503", "HTTP/1.1 503 Oops\ncontent-type: text/html\ncontent-length: 5\n\nhello"),
        ("html in a 404", "HTTP/1.1 404 Oops\ncontent-type: text/html\ncontent-length: 5\n\nhello"),
        ("gzip unasked", "HTTP/1.1 200 OK\n\(lines)\ncontent-encoding: gzip\ncontent-length: 5\n\nhello"),
        ("br", "HTTP/1.1 200 OK\n\(lines)\ncontent-encoding: br\ncontent-length: 5\n\nhello"),
        ("huge", "HTTP/1.1 200 OK\n\(lines)\ncontent-length: 9223372036854775807\n\nhello"),
        ("huge object", "HTTP/1.1 200 OK\n\(json)\ncontent-length: 20000000000\n\nhello"),
        ("huge refusal", "HTTP/1.1 503 Oops\ncontent-type: application/problem+json\ncontent-length: 99999999\n\n{"),
        ("no HTTP", "SSH-2.0-OpenSSH_9.2\n"),
    ]

    @Test("the gateway replaces an invalid snapshot node answer with Reel's own error", arguments: wrong)
    func wrongAnswer(name: String, answer: String) async throws {
        let rogue = try RogueServer { _ in .cut(RogueServer.http(answer)) }
        try await with([url(rogue)]) { live in
            for target in ["/v1/streams/todo/snapshot", "/v1/streams/todo/objects/task/1"] {
                let answer = try await live.get(target)
                #expect(answer.status == 503 && answer.headers["content-type"] == "application/problem+json")
                #expect(try answer.members["code"] as? String == "node_behind")
                #expect(!String(decoding: answer.body, as: UTF8.self).contains("hello"))
                #expect(answer.headers["cache-control"] == "no-store")
            }
            #expect(rogue.requests.count >= 2)
            #expect(!live.journalLines.filter { $0.contains("node=node-0") }.isEmpty, "the journal names the node")
        }
    }

    @Test("where one node answers nonsense, the next one is asked, and the first is asked last from then on")
    func nextNode() async throws {
        let rogue = try RogueServer { _ in .text("HTTP/1.1 200 OK\ncontent-type: text/html\ncontent-length: 1\n\nx") }
        let good = try RogueServer { _ in .text("HTTP/1.1 200 OK\n\(Self.lines)\ncontent-length: 5\n\nwhole") }
        try await with([url(rogue), url(good)]) { live in
            for _ in 0..<10 {
                let answer = try await live.get("/v1/streams/todo/snapshot")
                #expect(answer.status == 200 && String(decoding: answer.body, as: UTF8.self) == "whole")
            }
            #expect(rogue.requests.count <= 3 && good.requests.count == 10)
        }
    }

    @Test("the gateway sets the headers for browsers and caches, whatever the node sends")
    func setsBrowserHeaders() async throws {
        let rogue = try RogueServer { head in
            let isObject = head.contains("/objects")
            return .text(
                """
                HTTP/1.1 200 OK
                \(isObject ? Self.json : Self.lines)
                cache-control: public, max-age=31536000
                vary: *
                set-cookie: a=b
                access-control-allow-origin: *
                x-content-type-options: sniff
                etag: "<script>"
                retry-after: 1000000
                content-length: 5

                whole
                """
            )
        }
        try await with([url(rogue)]) { live in
            for (target, caching) in [("/snapshot", "no-cache"), ("/objects/task/1", "no-store")] {
                let answer = try await live.get("/v1/streams/todo" + target)
                #expect(answer.status == 200)
                #expect(answer.headers.all("cache-control") == [caching])
                #expect(answer.headers.all("x-content-type-options") == ["nosniff"])
                #expect(answer.headers.all("cross-origin-resource-policy") == ["same-origin"])
                for name in ["set-cookie", "access-control-allow-origin", "etag", "retry-after", "vary"] {
                    #expect(answer.headers[name] == nil, "\(name)")
                }
            }
        }
    }

    @Test("a right refusal, a 304 that was asked for and an etag pass")
    func right() async throws {
        let tag = "\"00000000000000a1:4\""
        let node = try RogueServer { head in
            if head.contains("if-none-match") { return .text("HTTP/1.1 304 Not Modified\netag: \(tag)\n\n") }
            if head.contains("/objects") {
                return .text(
                    "HTTP/1.1 404 Not Found\ncontent-type: application/problem+json\ncontent-length: 20\n\n"
                        + #"{"code":"not_found"}"#
                )
            }
            return .text("HTTP/1.1 200 OK\n\(Self.lines)\netag: \(tag)\ncontent-length: 5\n\nwhole")
        }
        try await with([url(node)]) { live in
            #expect(try await live.get("/v1/streams/todo/snapshot").headers["etag"] == tag)
            let held = try await live.ask("GET", "/v1/streams/todo/snapshot", headers: ["if-none-match": tag])
            #expect(held.status == 304 && held.headers["etag"] == tag && held.headers["cache-control"] == "no-cache")
            #expect(try await live.get("/v1/streams/todo/objects/task/1").status == 404)
        }
    }

    @Test("an endless refusal or a slowly sending node takes at most the time of one question")
    func withoutEnd() async throws {
        let head = RogueServer.http(
            "HTTP/1.1 503 Oops\ncontent-type: application/problem+json\ntransfer-encoding: chunked\n\n"
        )
        let endless = try RogueServer { _ in
            .endless(head, piece: RogueServer.http("1000\n" + String(repeating: "x", count: 4_096) + "\n"))
        }
        let dripping = try RogueServer { _ in
            .dripping([], piece: RogueServer.http("HTTP/1.1 100 Continue\n\n"), pauseMs: 20)
        }
        try await with([url(endless), url(dripping)], { ($0.peerMs, $0.peerHeadMs) = (300, 300) }) { live in
            let answer = try await live.get("/v1/streams/todo/snapshot")
            #expect(answer.status == 503 && answer.body.count < 1_000)
        }
    }

    @Test("an answer that is longer than a snapshot node's is cut off")
    func tooLong() async throws {
        let head = RogueServer.http("HTTP/1.1 200 OK\n\(Self.json)\ntransfer-encoding: chunked\n\n")
        let rogue = try RogueServer { _ in
            .endless(head, piece: RogueServer.http("10000\n" + String(repeating: "x", count: 65_536) + "\n"))
        }
        try await with([url(rogue)]) { live in
            await #expect(throws: NetError.self) { try await live.get("/v1/streams/todo/objects/task/1") }
            try await live.logLines("a snapshot node's answer is not passed on", has: 1)
        }
    }

    @Test("outcomes that a node answers with a status of no snapshot node leave a publish without outcomes")
    func outcomes() async throws {
        let rogue = try RogueServer { _ in .text("HTTP/1.1 204 No Content\n\n") }
        try await with([url(rogue)]) { live in
            let event = String(decoding: Sent.insert(Site(high: 1, low: 1), 0, "a"), as: UTF8.self)
            let answer = try await live.ask("POST", "/v1/streams/todo/events", body: #"{"events":[\#(event)]}"#)
            #expect(answer.status == 200)
            #expect(String(decoding: answer.body, as: UTF8.self).contains(#""no_outcome":{"code":"node_behind""#))
            let needed = try await live.ask(
                "POST",
                "/v1/streams/todo/outcomes",
                body: #"{"epoch":"\#(live.log.epoch)","acks":[{"site":"\#(Site(high: 1, low: 1))","op":0,"seq":0}]}"#
            )
            #expect(needed.status == 503)
        }
    }

    @Test("a gateway with TLS asks no node over plain HTTP, reports it once, and asks other nodes")
    func plainPeer() throws {
        func node(_ id: String, _ url: String, role: String = "snapshot") -> NodeAnnouncement {
            NodeAnnouncement(id: id, role: role, url: url, advertised: nil, build: "0", atMs: 1)
        }
        let plain = PeerAccess(NodeSettings())
        #expect(plain.canAsk(node("a", "http://10.0.0.1:7350")) && !plain.canAsk(node("b", "https://10.0.0.1:7350")))
        let secured = PeerAccess(tls: try TLSClient(authorities: nil), requiresTLS: true)
        #expect(secured.canAsk(node("b", "https://10.0.0.1:7350")))
        for url in ["http://10.0.0.1:7350", "http://127.0.0.1:7350", "10.0.0.1:7350", "ftp://a:1", "", "https://"] {
            #expect(!secured.canAsk(node("a", url)), "\(url)")
        }
        var unasked = UnaskedPeers(secured)
        let nodes = [
            node("a", "http://10.0.0.1:7350"), node("b", "https://b:1"), node("g", "http://g:1", role: "gateway"),
        ]
        #expect(unasked.look(at: nodes).map(\.node) == ["a"])
        #expect(unasked.notice?.contains("a cannot be asked") == true)
        #expect(unasked.look(at: nodes).isEmpty, "it is said once")
        #expect(unasked.look(at: [nodes[1]]).isEmpty && unasked.notice == nil)
    }
}
