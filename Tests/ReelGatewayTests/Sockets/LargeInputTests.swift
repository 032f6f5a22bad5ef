import Foundation
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests bodies and messages that are too large to be parsed on a loop.
@Suite(.timeLimit(.minutes(15))) struct LargeInputTests {
    private static let padding = String(repeating: " ", count: LargeInput.smallBytes)
    private static let site = "00000000-0000-4000-8000-000000000001"

    /// Returns the parts of an answer that are equal for equal publishes.
    private func gist(_ answer: HTTPResponse) throws -> String {
        let members = try answer.members
        let acks = (members["acks"] as? [[String: Any]] ?? []).map { "\($0["op"] ?? "") \($0["outcome"] ?? "")" }
        let rest = ["code", "detail", "index", "limit"].map { "\($0) \(members[$0] ?? "")" }
        return "\(answer.status) \(acks) \(rest)"
    }

    @Test("a large body is answered as a small one with the same content")
    func sameAnswers() async throws {
        try await StateWay.each { live in
            let named = { (op: Int) in EventText.sent("noop", Self.site, op).text }
            let contents: [(path: String, body: String)] = [
                ("/events", #"{"events":[{"type":"noop"},{"type":"noop"}]}"#),
                ("/events", #"{"events":[{"type":"noop"},{"type":"nothing"}]}"#),
                ("/events", #"{"events":[\#(named(0)),{"type":"noop"}]}"#),
                ("/events", #"{"events":[{"type":"update","model":"m","id":"1","base":3}]}"#),
                ("/events", #"{"events":[\#(Array(repeating: "{}", count: 1_001).joined(separator: ","))]}"#),
                ("/events", #"{"events":[]}"#),
                ("/events", #"{"events":[{"type":noop}]}"#),
                ("/sync", #"{"epoch":"\#(live.log.epoch)","after":7777,"events":[]}"#),
                ("/sync", #"{"after":-1,"events":[]}"#),
                ("/outcomes", #"{"epoch":"\#(live.log.epoch)","acks":[]}"#),
                ("/outcomes", #"{"epoch":"\#(live.log.epoch)"}"#),
            ]
            for (path, body) in contents {
                let small = try await live.ask("POST", "/v1/streams/todo" + path, body: body)
                let large = try await live.ask("POST", "/v1/streams/todo" + path, body: body + Self.padding)
                #expect(try gist(small) == gist(large), "\(path) \(body.prefix(80))")
            }
            let events = (0..<900).map { named($0).replacing("noop", with: "insert").dropLast() + extra($0) }
            let body = #"{"events":[\#(events.joined(separator: ","))]}"#
            #expect(body.utf8.count > LargeInput.smallBytes)
            let answer = try await live.ask("POST", "/v1/streams/large/events?outcome=1", body: body)
            let acks = try #require(try answer.members["acks"] as? [[String: Any]])
            #expect(acks.count == 900 && acks.allSatisfy { $0["outcome"] as? String == "applied" })
        }
    }

    @Test("the gateway answers a large message like a small one and before later messages")
    func answersLargeMessage() async throws {
        try await LiveGateway.with { live in
            let socket = try await live.connect()
            func frame(_ events: String, _ ref: Int) -> String {
                #"{"t":"publish","stream":"todo","ref":\#(ref),"events":[\#(events)]}"#
            }
            func noop(_ op: Int) -> String { EventText.sent("noop", Self.site, op).text }
            let unknown = #"{"type":"nothing","site":"\#(Self.site)","op":4}"#
            // The frames follow each other without a pause; spaces make the large ones large.
            socket.send(frame(noop(0), 0) + Self.padding)
            socket.send(frame(noop(1), 1))
            socket.send(frame((2..<4).map(noop).joined(separator: ","), 2) + Self.padding)
            socket.send(frame(unknown, 3) + Self.padding)
            socket.send(frame("", 4) + Self.padding + "x")
            socket.send(frame(noop(4), 5))
            var refs: [String] = []
            while refs.last != "5" {
                let answer = try await socket.next { $0.ref != nil }
                refs.append(String(decoding: answer.ref ?? [], as: UTF8.self))
                switch answer.body {
                case .ack(let ack): #expect(ack.acks.map(\.seq) == [[0], [1], [2, 3], [], [], [4]][Int(refs.last!)!])
                case .nack, .error: #expect(refs.last == "3")
                default: Issue.record("found \(answer)")
                }
            }
            #expect(refs == ["0", "1", "2", "3", "5"])
            #expect(try await socket.nextError().error.code == .badJSON)
        }
    }

    @Test("the gateway processes a large message although its client closes the socket after it")
    func processesMessageBeforeClose() async throws {
        try await LiveGateway.with { live in
            let socket = try await live.connect()
            let events = (0..<1_000).map { EventText.sent("noop", Self.site, $0).text }
            socket.send(#"{"t":"publish","stream":"todo","events":[\#(events.joined(separator: ","))]}"# + Self.padding)
            socket.close()
            #expect(try await socket.closeCode() == 1000)
            try await live.log(holds: 999, in: try #require(StreamName("todo")).partition(of: live.log.partitions))
        }
    }

    private func extra(_ number: Int) -> String { #","model":"m","id":"\#(number)","fields":{"a":\#(number)}}"# }

    /// A gate that knows which large bodies are being read, which of these may end, and which requests were answered.
    private final class Gate: @unchecked Sendable {
        private let condition = NSCondition()
        private var (begunNow, openNow, answeredNow) = ([String](), Set<String>(), [String]())

        var begun: [String] { condition.withLock { begunNow.sorted() } }
        var answered: [String] { condition.withLock { answeredNow.sorted() } }
        func answer(_ name: String) { condition.withLock { answeredNow.append(name) } }

        func open(_ names: String...) {
            condition.withLock {
                openNow = Set(names)
                condition.broadcast()
            }
        }

        /// Waits until the test opens the gate for this request.
        func pass(_ name: String) {
            condition.withLock {
                begunNow.append(name)
                while !openNow.contains(name) { condition.wait() }
            }
        }
    }

    /// A handler that reads each body; reading a large one lasts until the test opens the gate.
    private final class Reading: HTTPHandler {
        private let bodies = LargeInput()
        private let gate: Gate

        init(_ gate: Gate) { self.gate = gate }

        func respond(to request: HTTPRequest, _ exchange: HTTPExchange) {
            let name = request.head.target
            let payer = Payer.subject(String(name.dropFirst().prefix(1)))
            bodies.read(request, of: payer, exchange) { [gate] in
                { isLarge throws(Problem) in if isLarge { gate.pass(name) } }
            } then: { [gate] _ in
                gate.answer(name)
                exchange.respond(HTTPResponse(status: 200))
            }
        }

        func upgrade(_ offer: WebSocketOffer) -> WebSocketDecision { .refuse(HTTPResponse(status: 404)) }
        func refusal(of violation: HTTPViolation) -> HTTPResponse { HTTPResponse(status: violation.status) }
    }

    @Test("one large body of a client is read at once, its others wait, and small ones do not")
    func turns() async throws {
        let loop = try EventLoop()
        defer {
            loop.stop()
            loop.join()
        }
        let gate = Gate()
        let address = try loop.sync {
            let server = HTTPServer(on: loop, .patient, handler: Reading(gate))
            return try server.listen(on: try SocketAddress("127.0.0.1", port: 0))
        }
        let clients = try EventLoop()
        defer {
            clients.stop()
            clients.join()
        }
        let http = try clients.sync { LoopBound(HTTPClient(on: clients), on: clients) }
        func send(_ name: String, _ bytes: Int) throws {
            try clients.sync {
                var request = HTTPClientRequest(
                    "POST",
                    host: address.host,
                    port: address.port,
                    target: name,
                    body: Array(repeating: 32, count: bytes)
                )
                request.timeout = LiveGateway.patience
                _ = http.value.send(request) { _ in }
            }
        }
        let large = LargeInput.smallBytes + 1
        try send("/a1", large)
        try await eventually("it is under way") { gate.begun == ["/a1"] }
        for number in 2...3 { try send("/a\(number)", large) }
        try send("/b1", LargeInput.smallBytes)
        try await eventually("the small one is answered") { gate.answered == ["/b1"] }
        #expect(gate.begun == ["/a1"])
        gate.open("/a1")
        try await eventually("the next one of the client begins") { gate.begun.count == 2 && gate.answered.count == 2 }
        gate.open("/a1", "/a2", "/a3", "/c1")
        try send("/c1", large)
        try await eventually("all are answered") { gate.answered == ["/a1", "/a2", "/a3", "/b1", "/c1"] }
    }
}
