import EventLogConformance
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests that HEAD gets the head of the answer to GET, and that the connection stays open.
@Suite(.timeLimit(.minutes(15))) struct HeadRequestTests {
    private let site = Site(high: 1, low: 1)
    private let path = "/v1/streams/todo/events"

    @Test("a HEAD request returns the same status and headers as GET") func headMatchesGet() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            try await live.publish("todo", Sent.insert(site, 0, "a"))
            let targets: [(String, Int)] = [
                (path, 200), ("\(path)?wait=1000", 200), ("/v1/streams/todo/head", 200), ("/healthz", 200),
                ("/readyz", 200), ("/openapi.yaml", 200), ("\(path)?after=x", 400), ("/v1/socket", 400),
                ("/v1/streams/todo/blocks/\(live.log.epoch)/0", 404), ("/v1/streams/todo/snapshot", 503),
                ("/v1/streams/todo/sync", 405),
            ]
            for (target, status) in targets {
                let (get, head) = (try await live.get(target), try await live.ask("HEAD", target))
                #expect(get.status == status && head.status == status, "\(target)")
                #expect(head.body.isEmpty, "\(target)")
                for name in ["content-type", "cache-control", "allow", "retry-after", "vary"] {
                    #expect(head.headers[name] == get.headers[name], "\(target): \(name)")
                }
                // The body of a 405 contains the method, and HEAD is one letter longer than GET.
                let length = status == 405 ? get.body.count + 1 : get.body.count
                #expect(head.headers["content-length"] == "\(length)", "\(target)")
            }
            #expect(try await live.metric("reel_node_connections") == 1, "one connection has served all of them")
        }
    }

    @Test("of an answer in pieces only the head is made") func ofAnAnswerIn() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            let text = String(repeating: "x", count: 20_000)
            for op in 0..<10 { try await live.publish("todo", Sent.insert(site, Op(op), "\(op)", text)) }
            for target in [path, "\(path)?wait=1"] {
                let (get, head) = (try await live.get(target), try await live.ask("HEAD", target))
                #expect(get.status == 200 && get.body.count > 200_000)
                #expect(head.status == 200 && head.body.isEmpty)
                for answer in [get, head] {
                    #expect(answer.headers["transfer-encoding"] == "chunked")
                    #expect(answer.headers["content-length"] == nil)
                }
            }
            #expect(try await live.metric("reel_node_connections") == 1)
        }
    }

    @Test("an answer that GET would compress has no content length") func compressedHasNoLength() async throws {
        try await LiveGateway.with { live in
            for method in ["GET", "HEAD"] {
                let answer = try await live.ask(method, "/openapi.yaml", headers: ["accept-encoding": "gzip"])
                #expect(answer.status == 200 && answer.body.isEmpty == (method == "HEAD"))
                #expect(answer.headers["content-encoding"] == "gzip")
                #expect(answer.headers["content-length"] == nil)
            }
            #expect(try await live.get("/healthz").status == 200)
        }
    }

    @Test("of server sent events the head is the end") func ofServerSentEvents() async throws {
        try await LiveGateway.with { live in
            let head = try await live.ask("HEAD", path, headers: ["accept": "text/event-stream"])
            #expect(head.status == 200 && head.body.isEmpty)
            #expect(head.headers["content-type"] == "text/event-stream")
            #expect(try await live.metric("reel_gateway_http_subscribers") == 0, "nobody waits for what comes")
            #expect(try await live.metric("reel_node_connections") == 1)
        }
    }

    @Test("a long poll by head waits as get does") func aLongPollBy() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            let address = live.gateway.address
            let target = path + "?wait=1000"
            var request = HTTPClientRequest("HEAD", host: address.host, port: address.port, target: target)
            request.timeout = LiveGateway.patience
            let poll = try MessageReader(live.http, request)
            try await live.streamWaiters(are: 1)
            #expect(poll.head == nil)
            try await live.publish("todo", Sent.insert(site, 0, "a"))
            try await eventually("an answer") { poll.hasEnded }
            #expect(poll.head?.status == 200 && poll.byteCount == 0)
            let get = try await live.get(path)
            #expect(poll.head?.headers["content-length"] == "\(get.body.count)")
            try await live.streamWaiters(are: 0)
        }
    }
}
