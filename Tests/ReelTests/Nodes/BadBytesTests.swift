import Foundation
import ReelLab
import ReelNet
import TestSupport
import Testing

/// Tests bytes that no correct client sends, with each kind of node. Each gets its status and code with a description.
/// A well-behaved client is not disturbed, and no record is appended.
@Suite(.timeLimit(.minutes(20))) struct BadBytesTests {
    private static let post = "POST /v1/streams/todo/events HTTP/1.1\r\nHost: a\r\n"
    private static let get = "GET /v1/streams/todo/events HTTP/1.1\r\n"
    private static let deep = String(repeating: "[", count: 100_000)

    private static func posted(_ body: String) -> [UInt8] {
        Array("\(post)Content-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8)
    }

    private static func event(_ members: String) -> [UInt8] {
        posted(#"{"events":[{"type":"insert","site":"00000000-0000-4000-8000-000000000001","op":0,\#(members)}]}"#)
    }

    /// Requests, each with the status and the code of its answer. The HTTP codec gives these answers, so
    /// they are the same on every node.
    static let requests: [(name: String, sent: [UInt8], status: Int, code: String)] = [
        ("no Host", Array("\(get)\r\n".utf8), 400, "bad_request"),
        ("two Hosts", Array("\(get)Host: a\r\nHost: b\r\n\r\n".utf8), 400, "bad_request"),
        ("an empty Host", Array("\(get)Host:\r\n\r\n".utf8), 400, "bad_request"),
        ("a bare line feed", Array("\(get)Host: a\n\n".utf8), 400, "bad_request"),
        ("a folded field", Array("\(get)Host: a\r\nX: b\r\n c\r\n\r\n".utf8), 400, "bad_request"),
        ("a space before the colon", Array("\(get)Host : a\r\n\r\n".utf8), 400, "bad_request"),
        ("two lengths", Array("\(post)Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}".utf8), 400, "bad_request"),
        (
            "a length and chunks",
            Array("\(post)Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".utf8), 400, "bad_request"
        ),
        ("a length of words", Array("\(post)Content-Length: two\r\n\r\n{}".utf8), 400, "bad_request"),
        // Every node accepts a body for this route; for others a snapshot node refuses the head.
        (
            "chunks of no size",
            Array(
                ("POST /v1/streams/todo/outcomes HTTP/1.1\r\nHost: a\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n").utf8
            ), 400, "bad_request"
        ),
        ("a body too long", Array("\(post)Content-Length: 99999999\r\n\r\n".utf8), 413, "too_large"),
        (
            "a head too long", Array("\(get)Host: a\r\nX: \(String(repeating: "x", count: 1 << 20))\r\n\r\n".utf8), 431,
            "too_large"
        ),
        ("another version", Array("GET / HTTP/3.0\r\nHost: a\r\n\r\n".utf8), 505, "bad_request"),
        ("no request at all", Array("hello\r\n\r\n".utf8), 400, "bad_request"),
        (
            "TLS", [0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03, 0x0d, 0x0a, 0x0d, 0x0a], 400,
            "bad_request"
        ),
        ("a place that is none", Array("GET /v2/streams HTTP/1.1\r\nHost: a\r\n\r\n".utf8), 404, "not_found"),
        ("another method", Array("DELETE /v1/cluster HTTP/1.1\r\nHost: a\r\n\r\n".utf8), 405, "method_not_allowed"),
        ("a stream's bad name", Array("GET /v1/streams/~x/head HTTP/1.1\r\nHost: a\r\n\r\n".utf8), 400, "bad_stream"),
        ("half a percent", Array("GET /v1/streams/a%2/head HTTP/1.1\r\nHost: a\r\n\r\n".utf8), 400, "bad_request"),
    ]

    /// Bodies for a node that accepts events.
    static let bodies: [(name: String, sent: [UInt8], status: Int, code: String)] = [
        ("nothing", posted(""), 400, "bad_json"),
        ("half an object", posted(#"{"events":["#), 400, "bad_json"),
        ("a depth bomb", posted(#"{"events":\#(deep)"#), 400, "bad_json"),
        ("a deep event", event(#""model":"m","id":"1","fields":{"a":\#(deep)"#), 400, "bad_json"),
        ("bad UTF-8", Array("\(post)Content-Length: 13\r\n\r\n{\"events\":\"".utf8) + [0xff, 0x22], 400, "bad_json"),
        ("a lone surrogate", event(#""model":"m","id":"\ud800""#), 400, "bad_json"),
        ("a key twice", event(#""model":"m","model":"m","id":"1""#), 400, "bad_json"),
        ("1e999", event(#""model":"m","id":"1","fields":{"n":1e999}"#), 400, "bad_number"),
        (
            "an integer that no double holds", event(#""model":"m","id":"1","fields":{"n":9007199254740993}"#), 400,
            "bad_number"
        ),
        ("a type that is none", posted(#"{"events":[{"type":"sing"}]}"#), 400, "bad_event"),
        ("a number for a name", event(#""model":7,"id":"1""#), 400, "bad_event"),
        ("a stamp of the node's", event(#""model":"m","id":"1","by":"eve""#), 400, "bad_event"),
        ("a long name", event(#""model":"m","id":"\#(String(repeating: "x", count: 129))""#), 400, "bad_event"),
        (
            "a larger event",
            event(#""model":"m","id":"1","fields":{"a":"\#(String(repeating: "x", count: 300 << 10))"}"#), 413,
            "too_large"
        ),
        ("another epoch", posted(#"{"epoch":"0000000000000000","events":[{}]}"#), 409, "epoch_changed"),
    ]

    /// Sends each request on a connection of its own and checks the answer.
    private func send(
        _ table: [(name: String, sent: [UInt8], status: Int, code: String)],
        to node: NodeProcess
    ) async throws {
        for (name, sent, status, code) in table {
            let client = try RawClient(port: node.port)
            try await client.send(sent)
            let head = try await client.receive(until: "\r\n\r\n")
            let body = try await client.receive(until: "}")
            #expect(head.hasPrefix("HTTP/1.1 \(status) "), "\(name): \(head)")
            #expect(head.contains("content-type: application/problem+json"), "\(name): \(head)")
            #expect(body.contains(#""code":"\#(code)""#), "\(name): \(body)")
            #expect(body.contains(#""detail":"#), "\(name): \(body)")
        }
    }

    @Test("to those that take events", arguments: ["serve", "gateway"])
    func toThoseThatTake(kind: String) async throws {
        let folder = try TemporaryFolder(prefix: "reel-bytes-")
        let node = try LeavingTests.node(kind, in: folder)
        let good = try await WellBehavedClient(node)
        try await send(Self.requests + Self.bodies, to: node)
        try await good.check(nothingButItsOwn: true)
        #expect(!node.process.hasEnded())
    }

    @Test("to a snapshot node") func toASnapshotNode() async throws {
        let folder = try TemporaryFolder(prefix: "reel-bytes-")
        let node = try NodeProcess.snapshot(in: folder)
        try await send(Self.requests, to: node)
        #expect(try await node.snapshot(of: "todo").count > 0)
    }

    /// Frames, each with the code with which the node closes.
    static let frames: [(name: String, sent: [UInt8], code: Int)] = [
        ("not masked", RawClient.frame(0x81, Array("{}".utf8), isMasked: false), 1002),
        ("a reserved bit", RawClient.frame(0xc1, Array("{}".utf8)), 1002),
        ("an opcode that is none", RawClient.frame(0x83, []), 1002),
        ("a long ping", RawClient.frame(0x89, [UInt8](repeating: 0, count: 126)), 1002),
        ("a ping in pieces", RawClient.frame(0x09, []), 1002),
        ("an end without a start", RawClient.frame(0x80, []), 1002),
        ("a close of one byte", RawClient.frame(0x88, [3]), 1002),
        ("a close code that none may send", RawClient.frame(0x88, [0x03, 0xed]), 1002),
        ("a length longer than need be", [0x81, 0xfe, 0, 2, 0, 0, 0, 0, 0x7b, 0x7d], 1002),
        ("the 63rd bit of a length", [0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0], 1002),
        ("bytes", RawClient.frame(0x82, [1, 2, 3]), 1003),
        ("bad UTF-8", RawClient.frame(0x81, [0x22, 0xc0, 0xaf, 0x22]), 1007),
        ("half a surrogate pair in UTF-8", RawClient.frame(0x81, [0x22, 0xed, 0xa0, 0x80, 0x22]), 1007),
        ("a second hello", RawClient.frame(0x81, Array(#"{"t":"hello","client":"x/1"}"#.utf8)), 1008),
        ("a frame beyond the limit", RawClient.frame(0x81, [UInt8](repeating: 0x20, count: (1 << 20) + 1)), 1009),
        ("the promise of a huge frame", [0x81, 0xff, 0, 0, 0, 0xff, 0, 0, 0, 0, 1, 2, 3, 4], 1009),
    ]

    @Test("frames that end the connection end no other") func framesThatEndThe() async throws {
        let folder = try TemporaryFolder(prefix: "reel-bytes-")
        let node = try NodeProcess.serve(in: folder)
        let good = try await WellBehavedClient(node)
        for (name, sent, code) in Self.frames {
            let client = try await RawClient.socket(port: node.port)
            try await client.send(sent)
            let found = try await client.closeCode()
            #expect(found == code, "\(name)")
        }
        let early = try await RawClient.socket(port: node.port, hello: false)
        try await early.say(#"{"t":"publish","stream":"todo","events":[]}"#)
        #expect(try await early.closeCode() == 1008)
        for _ in 0..<50 {
            let gone = try await RawClient.socket(port: node.port)
            try await gone.send([0x81, 0xfe])
        }
        try await good.check(nothingButItsOwn: true)
    }

    @Test("a node disconnects a client that sends too slowly") func disconnectsSlowClient() async throws {
        let folder = try TemporaryFolder(prefix: "reel-bytes-")
        // The timeout for a head and for `hello` is 10 s, for a body 30 s.
        let words = ["serve", "--data", folder.path + "/data", "--handshake-ms", "10000"]
        let node = try NodeProcess(words, in: folder)
        let good = try await retried { try await WellBehavedClient(node) }
        let (port, isLong) = (node.port, effort > 1)
        async let silent = retried { try await RawClient.socket(port: port, hello: false).closeCode() }
        async let head = answer(to: "GET / HTTP/1.1\r\nHo", of: port)
        async let body = answer(to: isLong ? "\(Self.post)Content-Length: 2\r\n\r\n{" : "hello\r\n\r\n", of: port)
        let (code, ofHead, ofBody) = (try await silent, try await head, try await body)
        #expect(code == 1008)
        #expect(ofHead.hasPrefix("HTTP/1.1 408 "))
        #expect(ofBody.hasPrefix(isLong ? "HTTP/1.1 408 " : "HTTP/1.1 400 "))
        try await good.check(nothingButItsOwn: true)
    }

    /// Returns the answer to the beginning of a request. A connection that was delayed before its first byte is closed
    /// without an answer; then the test tries again.
    private func answer(to beginning: String, of port: UInt16) async throws -> String {
        try await retried {
            let client = try RawClient(port: port)
            try await client.send(beginning)
            let answer = try await client.receiveAll(seconds: 120)
            if answer.isEmpty { throw NeverCame(description: "a word") }
            return answer
        }
    }

    /// Runs the body at most six times, since a delayed test may itself be too slow. Throws the last error.
    private func retried<Found>(_ body: () async throws -> Found) async throws -> Found {
        for _ in 0..<5 {
            if let found = try? await body() { return found }
        }
        return try await body()
    }
}

/// A client that follows the protocol. Tests use it to see whether other clients disturb it.
final class WellBehavedClient {
    private let node: NodeProcess
    private let socket: RawClient
    private let stream: String
    private var op = 0
    private var seq = -1

    init(_ node: NodeProcess, stream: String = "good") async throws {
        self.node = node
        self.stream = stream
        socket = try await RawClient.socket(port: node.port)
        try await socket.say(#"{"t":"subscribe","stream":"\#(stream)","after":-1}"#)
        _ = try await socket.hear("subscribed")
        try await check()
    }

    /// Publishes an event, and waits for its ack and its delivery on the same connection. With `nothingButItsOwn`, it
    /// checks that the log contains only its own events.
    func check(nothingButItsOwn: Bool = false) async throws {
        let event = EventText.sent("noop", "00000000-0000-4000-8000-00000000600d", op).text
        let publish = #"{"t":"publish","stream":"\#(stream)","events":[\#(event)]}"#
        try await socket.say(publish)
        var (acked, heard): (Int?, Int?) = (nil, nil)
        while acked == nil || heard == nil {
            let frame = try await socket.hear(["ack", "events", "nack"])
            if frame["t"] as? String == "nack" {
                // The log may have been slow for a while.
                try #require(frame["code"] as? String == "log_unavailable", "\(frame)")
                try await Task.sleep(for: .milliseconds(100))
                try await socket.say(publish)
            }
            if let acks = frame["acks"] as? [[String: Any]] { acked = acks.first?["seq"] as? Int }
            if let events = frame["events"] as? [[String: Any]], let last = events.last { heard = last["seq"] as? Int }
        }
        #expect(acked == heard)
        if nothingButItsOwn {
            #expect(acked == seq + 1)
            let own = try await node.members("/v1/streams/\(stream)/head")["partition"] as? Int
            for name in ["todo", "good", "a", "b", "c", "d", "e"] {
                let partition = try await node.members("/v1/streams/\(name)/head")["partition"] as? Int
                let expected = partition == own ? acked : -1
                // The answering loop may not have read yet what another loop has delivered.
                try await eventually("stream \(name) ends at \(expected ?? -1)") {
                    try await node.members("/v1/streams/\(name)/head")["head"] as? Int == expected
                }
            }
        }
        op += 1
        seq = acked ?? seq
    }
}
