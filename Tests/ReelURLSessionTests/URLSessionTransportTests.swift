import ReelClient
import ReelCore
import Synchronization
import TestSupport
import Testing

@testable import ReelURLSession

/// The transport of Apple platforms, with the `URLSession` of this platform.
@Suite(.timeLimit(.minutes(5))) struct URLSessionTransportTests {
    /// A user of the transport that runs on the transport's executor, as a client does.
    private actor Device {
        private let transport: URLSessionTransport
        private let executor: any SerialExecutor

        init(silenceMs: Int = 30_000) {
            var limits = TransportLimits()
            limits.silenceMs = silenceMs
            transport = URLSessionTransport(limits: limits)
            executor = transport.executor
        }

        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

        func use(_ body: @Sendable (URLSessionTransport) -> Void) { body(transport) }
    }

    /// The callbacks that have arrived, as texts. Adjacent pieces of a body are one.
    private final class Heard: Sendable {
        private let texts = Mutex<[String]>([])
        var all: [String] { texts.withLock { $0 } }

        func add(_ text: String) {
            texts.withLock { texts in
                if text.hasPrefix("body "), texts.last?.hasPrefix("body ") == true {
                    texts[texts.count - 1] += text.dropFirst(5)
                } else {
                    texts.append(text)
                }
            }
        }

        func add(_ response: TransportResponse) {
            switch response {
            case .head(let status, let length): add("head \(status) \(length.map(String.init) ?? "-")")
            case .body(let bytes): add("body \(String(decoding: bytes, as: UTF8.self))")
            case .end: add("end")
            case .failed: add("failed")
            }
        }

        var isOver: Bool { all.last == "end" || all.last == "failed" }
    }

    private func answer(_ answer: RogueServer.Answer, silenceMs: Int = 30_000) async throws -> [String] {
        let server = try RogueServer { _ in answer }
        let heard = Heard()
        let device = Device(silenceMs: silenceMs)
        await device.use { transport in
            _ = transport.get(from: "http://127.0.0.1:\(server.port)", "/x", token: nil) {
                transport.queueIsCurrent()
                heard.add($0)
            }
        }
        try await eventually("the answer ends") { heard.isOver }
        return heard.all
    }

    @Test("an answer arrives as head, body and end, on the executor") func wholeAnswer() async throws {
        let known = try await answer(.text("HTTP/1.1 200 OK\ncontent-length: 5\n\nhello"))
        #expect(known == ["head 200 5", "body hello", "end"])
        let chunks = try await answer(
            .text("HTTP/1.1 404 Not Found\ntransfer-encoding: chunked\n\n2\nhe\n3\nllo\n0\n\n")
        )
        #expect(chunks == ["head 404 -", "body hello", "end"])
        let empty = try await answer(.text("HTTP/1.1 204 No Content\n\n"))
        #expect(empty.first?.hasPrefix("head 204") == true && empty.count == 2 && empty.last == "end")
    }

    @Test("a body that is still arriving is handed over piece by piece") func streamedAnswer() async throws {
        let head = RogueServer.http("HTTP/1.1 200 OK\n\n")
        let server = try RogueServer { _ in .dripping(head, piece: Array("x".utf8), pauseMs: 5) }
        let heard = Heard()
        let handle = Mutex<[any TransportHandle & Sendable]>([])
        let device = Device()
        await device.use { transport in
            let call = transport.get(from: "http://127.0.0.1:\(server.port)", "/x", token: nil) { heard.add($0) }
            if let call = call as? RequestCall { handle.withLock { $0.append(call) } }
        }
        try await eventually("two pieces") { heard.all.count == 2 && heard.all[1].count >= 7 }
        await device.use { _ in
            for call in handle.withLock({ $0 }) { call.cancel() }
            heard.add("cancelled")
        }
        // Another answer comes after everything that could still arrive of the first one.
        let other = try RogueServer { _ in .text("HTTP/1.1 200 OK\ncontent-length: 0\n\n") }
        await device.use { transport in
            _ = transport.get(from: "http://127.0.0.1:\(other.port)", "/x", token: nil) {
                if case .end = $0 { heard.add("other") }
            }
        }
        try await eventually("the other answer") { heard.all.last == "other" }
        #expect(heard.all.dropFirst(2) == ["cancelled", "other"])
    }

    @Test("an answer that is cut, silent or none at all fails", .timeLimit(.minutes(1))) func failures() async throws {
        let cut = try await answer(.cut(RogueServer.http("HTTP/1.1 200 OK\ncontent-length: 9\n\nhello")))
        #expect(cut.last == "failed")
        let chunk = try await answer(.cut(RogueServer.http("HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n9\nhello")))
        #expect(chunk.last == "failed")
        #expect(try await answer(.cut([])) == ["failed"])
        #expect(try await answer(.text("nonsense\n\n")).last == "failed")
        #expect(try await answer(.bytes([]), silenceMs: 1_000) == ["failed"])
        let silent = try await answer(.text("HTTP/1.1 200 OK\ncontent-length: 9\n\nhello"), silenceMs: 1_000)
        #expect(silent == ["head 200 9", "body hello", "failed"])
    }

    @Test("a redirection is not followed") func redirection() async throws {
        let other = try RogueServer { _ in .text("HTTP/1.1 200 OK\ncontent-length: 0\n\n") }
        let found = try await answer(
            .text("HTTP/1.1 302 Found\nlocation: http://127.0.0.1:\(other.port)/\ncontent-length: 0\n\n")
        )
        #expect(found == ["head 302 0", "end"])
        #expect(other.requests.isEmpty)
    }

    @Test("a request carries the target, the body and the token, and no cookie") func request() async throws {
        let server = try RogueServer { _ in .text("HTTP/1.1 200 OK\nset-cookie: a=b\ncontent-length: 0\n\n") }
        let heard = Heard()
        let device = Device()
        await device.use { transport in
            let node = "http://127.0.0.1:\(server.port)"
            _ = transport.post(to: node, "/v1/x?a=%2F", json: Array("{}".utf8), token: "t.o.k") { heard.add($0) }
        }
        try await eventually("the first answer") { heard.isOver }
        await device.use { transport in
            _ = transport.get(from: "http://127.0.0.1:\(server.port)", "/y", token: nil) {
                if case .end = $0 { heard.add("second") }
            }
        }
        try await eventually("the second answer") { heard.all.last == "second" }
        let heads = server.requests.map { $0.lowercased() }
        #expect(heads.count == 2)
        #expect(heads[0].hasPrefix("post /v1/x?a=%2f http/1.1"))
        for line in ["authorization: bearer t.o.k", "content-type: application/json", "content-length: 2"] {
            #expect(heads[0].contains(line))
        }
        #expect(heads[1].hasPrefix("get /y http/1.1"))
        #expect(!heads[1].contains("authorization") && !heads[1].contains("cookie"))
        #expect(heads.allSatisfy { $0.contains("accept-encoding: identity") })
    }

    @Test(
        "an invalid address fails after the call returns, with the expected form",
        arguments: ["foo", "http://a:0", ""]
    )
    func invalidAddress(node: String) async throws {
        let heard = Mutex<[String]>([])
        let device = Device()
        await device.use { transport in
            #expect(throws: ReelError.self) { try transport.check(node) }
            _ = transport.connect(to: node) {
                if case .closed(let reason) = $0 { heard.withLock { $0.append(reason) } }
            }
            _ = transport.get(from: node, "/", token: nil) {
                if case .failed(let reason) = $0 { heard.withLock { $0.append(reason) } }
            }
            heard.withLock { $0.append("back") }
        }
        try await eventually("all three") { heard.withLock { $0.count } == 3 }
        let found = heard.withLock { $0 }
        #expect(found[0] == "back" && found[1] == found[2])
        #expect(found[1].hasPrefix("found the node \(node.debugDescription), expected http://HOST:PORT"))
    }

    // The `URLSession` of Linux has no WebSockets, so a socket ends there in this way to any node.
    @Test("a socket that cannot be opened is closed after the call returns") func refusedSocket() async throws {
        let port = try RogueServer { _ in .cut([]) }.port
        let heard = Heard()
        let device = Device()
        await device.use { transport in
            _ = transport.connect(to: "http://127.0.0.1:\(port)") { if case .closed = $0 { heard.add("closed") } }
            heard.add("back")
        }
        try await eventually("the end") { heard.all.count == 2 }
        #expect(heard.all == ["back", "closed"])
    }

    @Test("timers run once, and not after they are cancelled") func timers() async throws {
        let heard = Heard()
        let device = Device()
        await device.use { transport in
            _ = transport.after(40) { heard.add("second") }
            _ = transport.after(1) { heard.add("first") }
            transport.after(2) { heard.add("cancelled") }.cancel()
            transport.onBatchEnd { heard.add("batch") }
            transport.execute { heard.add("now") }
            heard.add("back")
        }
        try await eventually("both timers") { heard.all.count == 5 }
        #expect(heard.all.prefix(3) == ["now", "back", "batch"])
        // A timer that a pause of the process has delayed may be the last one.
        #expect(Set(heard.all.suffix(2)) == ["first", "second"])
    }

    @Test("a transport that nobody uses any more is freed, with its timers and requests") func freed() async throws {
        weak var executor: AnyObject?
        let server = try RogueServer { _ in .bytes([]) }
        do {
            let transport = URLSessionTransport()
            executor = transport.executor
            transport.execute { [transport] in
                _ = transport.after(3_600_000) {}
                _ = transport.get(from: "http://127.0.0.1:\(server.port)", "/", token: nil) { _ in }
            }
            try await eventually("the request arrives") { server.requests.count == 1 }
        }
        try await eventually("the executor is freed", seconds: 20) { executor == nil }
    }

    @Test("an offline client runs on the transport") func offlineClient() async throws {
        let client = try SyncClient(nodes: [], store: .memory, transport: URLSessionTransport())
        try await client.open("s").publish(.insert("m", id: "0"))
        await client.close()
    }
}

extension URLSessionTransport {
    fileprivate func queueIsCurrent() { executor.checkIsolated() }
}
