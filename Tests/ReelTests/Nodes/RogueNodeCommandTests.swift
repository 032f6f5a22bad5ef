import Foundation
import ReelCore
import ReelNet
import TestSupport
import Testing

@testable import ReelTool

/// Tests commands that ask a malicious node.
@Suite(.timeLimit(.minutes(5))) struct RogueNodeCommandTests {
    /// Controls that a terminal must never get: a color, a title, C1, DEL, and controls of the writing direction.
    private static let controls = "\u{1b}[31mX\u{1b}]0;pwn\u{7}\r\u{9b}1m\u{7f}\u{202e}\u{2066}\u{200f}\u{61c}"
    private static let escaped = #"\u001b[31mX\u001b]0;pwn\u0007\r\u009b1m\u007f\u202e\u2066\u200f\u061c"#
    /// The controls as JSON may contain them; canonical JSON escapes C0 only.
    private static let json = #"\u001b[31mX\u001b]0;pwn\u0007\r"# + "\u{9b}1m\u{7f}\u{202e}\u{2066}\u{200f}\u{61c}"

    private func holdsControls(_ text: String) -> Bool {
        text.unicodeScalars.contains { $0 != "\n" && PrintableText.isControl($0) }
    }

    private func answer(_ body: String, status: Int = 200, type: String = "application/json") -> RogueServer.Answer {
        .bytes(
            RogueServer.http(
                "HTTP/1.1 \(status) Said\ncontent-type: \(type)\ncontent-length: \(body.utf8.count)\n\n"
            ) + Array(body.utf8)
        )
    }

    @Test(
        "a refusal is printed without a control character",
        arguments: ["get", "fetch", "digest", "cluster", "site list"]
    )
    func refusal(command: String) async throws {
        let body = #"{"code":"bad_request","detail":"\#(Self.json)"}"#
        let node = try RogueServer { _ in answer(body, status: 400, type: "application/problem+json") }
        let words = command.split(separator: " ").map(String.init) + (command == "cluster" ? [] : ["todo"])
        let run = await CommandRun(words + ["--url", "http://127.0.0.1:\(node.port)"], isTerminal: true)
        #expect(run.code != .done)
        #expect(run.errors.contains(Self.escaped) || run.output.contains(Self.escaped), "\(run)")
        #expect(!holdsControls(run.errors) && !holdsControls(run.output), "\(run)")
    }

    @Test("an event is printed on a terminal without a control character, and to a program as it is")
    func events() async throws {
        let event =
            #"{"seq":0,"by":"ann","fields":{"title":"\#(Self.json)"},"id":"1","model":"m\#("\u{9b}\u{202e}")","type":"insert"}"#
        let node = try RogueServer { head in
            if head.contains("/head ") {
                return answer(#"{"stream":"todo","epoch":"00000000000000a1","partition":0,"first":0,"head":0}"#)
            }
            return answer(
                #"{"stream":"todo","epoch":"00000000000000a1","partition":0,"from":0,"head":0,"events":[\#(event)],"to":0}"#
            )
        }
        let words = ["fetch", "todo", "--url", "http://127.0.0.1:\(node.port)"]
        let program = await CommandRun(words)
        #expect(program.code == .done && program.output == event + "\n", "\(program)")
        let person = await CommandRun(words, isTerminal: true)
        #expect(!holdsControls(person.output), "\(person)")
        func parsed(_ text: String) throws -> NSDictionary {
            try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? NSDictionary)
        }
        #expect(try parsed(person.output) == parsed(program.output), "it is the same JSON")
    }

    @Test("get prints nothing when the answer is not an object", arguments: [true, false])
    func refusesInvalidObject(isTerminal: Bool) async throws {
        let node = try RogueServer { _ in answer("\u{1b}[31mno object") }
        let run = await CommandRun(
            ["get", "todo", "task", "1", "--url", "http://127.0.0.1:\(node.port)"],
            isTerminal: isTerminal
        )
        #expect(run.code == .badData && run.output.isEmpty && !holdsControls(run.errors), "\(run)")
    }

    /// A gateway that answers `hello` and other frames with these texts.
    private final class RogueSocket: HTTPHandler, WebSocketHandler {
        private let hello: [String]
        private let subscribed: [String]

        init(_ hello: [String], _ subscribed: [String]) { (self.hello, self.subscribed) = (hello, subscribed) }

        func respond(to request: HTTPRequest, _ exchange: HTTPExchange) { exchange.respond(HTTPResponse(status: 404)) }
        func upgrade(_ offer: WebSocketOffer) -> WebSocketDecision {
            .accept(subprotocol: "reel.v1", maxMessage: 1 << 20, handler: self)
        }
        func refusal(of violation: HTTPViolation) -> HTTPResponse { HTTPResponse(status: violation.status) }

        func received(text: [UInt8], from socket: WebSocket) {
            let isHello = String(decoding: text, as: UTF8.self).contains("hello")
            for text in isHello ? hello : subscribed { socket.send(text: Array(text.utf8)) }
        }

        func closed(_ socket: WebSocket, code: UInt16, reason: String) {}
    }

    private func tail(_ hello: [String], _ subscribed: [String]) async throws -> CommandRun {
        let loop = try EventLoop()
        defer { loop.stop() }
        let address = try await loop.run {
            let server = HTTPServer(on: loop, handler: RogueSocket(hello, subscribed))
            return try server.listen(on: try SocketAddress("127.0.0.1", port: 0))
        }
        return await CommandRun(["tail", "todo", "--url", "http://\(address)"], isTerminal: true)
    }

    private static let welcome =
        #"{"t":"welcome","node":"a","epoch":"00000000000000a1","number":0,"partitions":1,"#
        + #""limits":{"frame":1048576,"event":262144,"batch":50,"subscriptions":100,"fetch":100000},"ping_s":20}"#

    @Test("reel tail prints what a gateway refuses without a control character")
    func refusedTail() async throws {
        let run = try await tail(
            [Self.welcome],
            [#"{"t":"error","code":"bad_stream","message":"\#(Self.json)","stream":"todo"}"#]
        )
        #expect(run.code != .done && run.errors.contains(Self.escaped) && !holdsControls(run.errors), "\(run)")
    }

    @Test(
        "tail reports a gateway that violates the protocol and tries another gateway",
        arguments: [
            ["{"], [welcome.replacing(#""partitions":1"#, with: #""partitions":0"#)], [#"{"t":"what"}"#],
            [welcome, #"{"t":"error","code":"overloaded","message":"later","retry_ms":9007199254740991}"#],
            [welcome, #"{"t":"goaway","after_ms":0,"nodes":["\u001b[31m"]}"#],
        ]
    )
    func reportsProtocolViolation(hello: [String]) async throws {
        let run = try await tail(hello, [])
        #expect(run.code == .unreachable && !holdsControls(run.errors) && run.errors.contains("127.0.0.1"), "\(run)")
    }

    // MARK: Endless answers

    private func endless(_ head: String) throws -> RogueServer {
        try RogueServer { _ in
            .endless(
                RogueServer.http("HTTP/1.1 200 OK\n\(head)transfer-encoding: chunked\n\n"),
                piece: RogueServer.http("10000\n" + String(repeating: "x", count: 65_536) + "\n")
            )
        }
    }

    @Test("an answer without end is given up")
    func endlessAnswer() async throws {
        let node = try endless("")
        let probe = try await NodeProbe()
        defer { probe.close() }
        let address = try NodeAddress("http://127.0.0.1:\(node.port)")
        guard case .failure(let error) = await probe.get("/readyz", of: address) else { throw Missing() }
        #expect(error.message.contains("an answer of more than"))
        // A line of 64 MiB exceeds the limit.
        guard case .failure(.silent(let long)) = await probe.state("/x", of: address, into: SnapshotReader()) else {
            throw Missing()
        }
        #expect(long.message.contains("a line of more than"))
    }

    @Test("a reader stops at the first wrong line of a state, however many lines follow")
    func stopsAtWrongLine() async throws {
        let node = try RogueServer { _ in
            .endless(
                RogueServer.http("HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n"),
                piece: RogueServer.http("3\n{}\u{0}\n").map { $0 == 0 ? UInt8(ascii: "\n") : $0 }
            )
        }
        let probe = try await NodeProbe()
        defer { probe.close() }
        let address = try NodeAddress("http://127.0.0.1:\(node.port)")
        guard case .failure(.wrong(let error)) = await probe.state("/x", of: address, into: SnapshotReader()) else {
            throw Missing()
        }
        #expect(error.message.contains("line 1 of a snapshot"))
    }

    private struct Missing: Error {}
}
