import Foundation
import NodeTestSupport
import Synchronization
import TestSupport
import Testing

@testable import ReelNet

@Suite(.timeLimit(.minutes(5))) struct WebSocketTests {
    @Test("echoes through its own client") func echoesThroughItsOwn() async throws {
        let server = try EchoServer()
        let payloads = [0, 1, 125, 126, 65535, 65536, 1_000_000].map {
            [UInt8](repeating: UInt8(ascii: "a"), count: $0)
        }
        let (received, code): ([[UInt8]], UInt16) = try await withCheckedThrowingContinuation { continuation in
            server.loop.execute {
                let target = WebSocketTarget.patient(server.address.port)
                let handler = Collector(payloads) { continuation.resume(returning: ($0, $1)) }
                WebSocketClient.connect(on: server.loop, to: target, handler: handler) {
                    continuation.resume(throwing: $0)
                }
            }
        }
        #expect(received == payloads)
        #expect(code == 1000)
    }

    @Test("a message that comes in pieces is heard of before its end") func aMessageThatComes() async throws {
        let server = try EchoServer()
        let parts: Int = try await withCheckedThrowingContinuation { continuation in
            server.loop.execute {
                let target = WebSocketTarget.patient(server.address.port)
                let handler = PartCounter { continuation.resume(returning: $0) }
                WebSocketClient.connect(on: server.loop, to: target, handler: handler) {
                    continuation.resume(throwing: $0)
                }
            }
        }
        #expect(parts > 0)
    }

    @Test("a message that has begun is known") func aMessageThatHas() async throws {
        let server = try EchoServer()
        let socket = try open(server)
        func part() throws -> Int? { try server.onHandler { $0.sockets.last?.partBytes } ?? nil }
        #expect(try part() == nil)
        let text = WebSocketFrame.encode(.text, Array("hello".utf8), mask: 1, isFinal: false)
        socket.send(Array(text.prefix(1)))
        try await eventually { try part() == 0 }
        socket.send(Array(text.dropFirst().dropLast(2)))
        try await eventually { try part() == 3 }
        // Neither the end of a fragment nor another frame between fragments ends the message.
        socket.send(Array(text.suffix(2)) + WebSocketFrame.encode(.ping, [7], mask: 1))
        #expect(socket.receive() == [0x8A, 1, 7])
        #expect(try part() == 5)
        socket.send(WebSocketFrame.encode(.continuation, Array("!".utf8), mask: 1))
        #expect(socket.receive() == [0x81, 6] + Array("hello!".utf8))
        #expect(try part() == nil)
    }

    @Test("between the frames of one connection, others have their turn", arguments: [false, true])
    func turns(endsBehind: Bool) throws {
        let server = try EchoServer()
        let (many, one) = (try open(server), try open(server))
        let (heard, isSent) = (Lines(), DispatchSemaphore(value: 0))
        _ = try server.onHandler { handler in
            handler.sockets.beforeText = { text in
                heard.add(text)
                // The loop waits until the other socket's frame is in the kernel, before it takes the second frame.
                if text == "many 0" { isSent.wait() }
                let end = ContinuousClock.now + .milliseconds(2)
                while ContinuousClock.now < end {}
            }
        }
        let frames = (0..<20).flatMap { WebSocketFrame.encode(.text, Array("many \($0)".utf8), mask: 1) }
        many.send(frames + (endsBehind ? WebSocketFrame.encode(.close, [], mask: 1) : []))
        one.send(WebSocketFrame.encode(.text, Array("one".utf8), mask: 1))
        isSent.signal()
        #expect(one.receive().suffix(3) == Array("one".utf8))
        let answers = (0..<20).flatMap { WebSocketFrame.encode(.text, Array("many \($0)".utf8), mask: nil) }
        var received: [UInt8] = []
        while received.count < answers.count { received += many.receive() }
        #expect(Array(received.prefix(answers.count)) == answers, "none is lost, and they keep their order")
        let order = heard.all
        #expect(order.count == 21 && order.firstIndex(of: "one") ?? 21 < 20, "\(order)")
    }

    @Test("a socket inflates nothing after its close frame and still reads the client's close frame")
    func inflatesNothingAfterClose() throws {
        let server = try EchoServer()
        let socket = try RawSocket(server.address)
        socket.send(
            Self.handshake.replacing("\r\n\r\n", with: "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n")
        )
        #expect(socket.receive(until: "\r\n\r\n").contains("permessage-deflate"))
        let damaged: [UInt8] = [0xc1, 0x82, 0, 0, 0, 0, 0xff, 0xff]
        socket.send(WebSocketFrame.encode(.text, Array("close me".utf8), mask: 1) + damaged + damaged)
        socket.send(WebSocketFrame.encode(.close, [0x0f, 0xa1], mask: 1))
        let close = WebSocketFrame.encode(.close, WebSocketFrame.closePayload(4001, ""), mask: nil)
        #expect(socket.receive() == close, "no violation is found in what nobody reads")
        #expect(socket.endsInOrder())
    }

    @Test("agrees on a subprotocol") func agreesOnASubprotocol() async throws {
        let server = try EchoServer()
        var target = WebSocketTarget.patient(server.address.port)
        target.subprotocols = ["reel.v1", "other"]
        #expect(try await opened(target, on: server.loop) == "reel.v1")
    }

    @Test(
        "opens only what is asked for in due form",
        arguments: [
            ("POST / HTTP/1.1\r\n", "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \(key)\r\n", 400),
            ("GET / HTTP/1.0\r\n", "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \(key)\r\n", 400),
            ("GET / HTTP/1.1\r\n", "Sec-WebSocket-Key: \(key)\r\n", 426),
            ("GET / HTTP/1.1\r\n", "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: \(key)\r\n", 426),
            ("GET / HTTP/1.1\r\n", "Sec-WebSocket-Version: 13\r\n", 400),
            ("GET / HTTP/1.1\r\n", "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c2hvcnQ=\r\n", 400),
            ("GET / HTTP/1.1\r\n", "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZ!==\r\n", 400),
            (
                "GET / HTTP/1.1\r\n",
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \(key)\r\nSec-WebSocket-Key: \(key)\r\n", 400
            ),
            (
                "GET / HTTP/1.1\r\n",
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \(key)\r\nSec-WebSocket-Protocol: a, a\r\n", 400
            ),
            (
                "GET / HTTP/1.1\r\n",
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \(key)\r\nContent-Length: 2\r\n\r\nhi", 400
            ),
            ("GET /refused HTTP/1.1\r\n", "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \(key)\r\n", 404),
            ("GET / HTTP/1.1\r\n", "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \(key)\r\n", 101),
        ]
    ) func opensOnlyWhatIs(_ line: String, _ fields: String, _ status: Int) throws {
        let server = try EchoServer()
        let socket = try RawSocket(server.address)
        socket.send("\(line)Host: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\(fields)\r\n")
        let answer = socket.receive(until: "\r\n\r\n")
        #expect(answer.hasPrefix("HTTP/1.1 \(status) "))
        #expect(status != 426 || answer.contains("sec-websocket-version: 13\r\n"))
        #expect(status != 426 || answer.contains("upgrade: websocket\r\nconnection: upgrade\r\n"))
        // The key and its answer are the example of RFC 6455, 1.3.
        #expect(status != 101 || answer.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"))
    }

    @Test("reads frames that came with the handshake") func readsFramesThatCame() throws {
        let server = try EchoServer()
        let socket = try RawSocket(server.address)
        socket.send(Array(Self.handshake.utf8) + WebSocketFrame.encode(.text, Array("early".utf8), mask: 1))
        #expect(socket.receive(until: "early").hasSuffix("\r\n\r\n\u{fffd}\u{5}early"))
    }

    @Test("fails a violation with its code and ends") func failsAViolationWith() throws {
        let server = try EchoServer()
        for (bytes, code) in [([0x81, 0x01, 0x61], 1002), ([0x81, 0x81, 0, 0, 0, 0, 0xFF], 1007)] as [([UInt8], UInt16)]
        {
            let socket = try open(server)
            socket.send(bytes)
            let answer = socket.receive(4)
            #expect(answer.count == 4 && answer[0] == 0x88)
            #expect(UInt16(answer[2]) << 8 | UInt16(answer[3]) == code)
            while !socket.receive().isEmpty {}
        }
    }

    @Test("answers a close frame with its own and ends first") func answersACloseFrame() async throws {
        let server = try EchoServer()
        let socket = try open(server)
        socket.send(WebSocketFrame.encode(.close, [0x0F, 0xA0] + "done".utf8, mask: 7))
        #expect(socket.receive() == [0x88, 0x02, 0x0F, 0xA0])
        #expect(socket.receive() == [])
        try await eventually { try server.counters.webSockets == 0 && server.counters.open == 0 }
    }

    @Test("cuts off a peer that never answers a close") func cutsOffAPeer() async throws {
        var settings = HTTPServer.Settings.patient
        settings.closeDeadline = .milliseconds(50)
        let server = try EchoServer(settings)
        let socket = try open(server)
        socket.send(WebSocketFrame.encode(.text, Array("close me".utf8), mask: 1))
        #expect(socket.receive() == [0x88, 0x02, 0x0F, 0xA1])
        #expect(socket.receive() == [])
        try await eventually { try server.counters.webSockets == 0 }
    }

    @Test("cuts off a peer that ends its side and reads no more") func cutsOffAPeerThat() async throws {
        var settings = HTTPServer.Settings.patient
        (settings.closeDeadline, settings.idleDeadline) = (.milliseconds(50), .milliseconds(50))
        let server = try EchoServer(settings)
        let socket = try open(server)
        try server.onHandler { $0.sockets.last?.send(binary: [UInt8](repeating: 1, count: 64 << 20)) }
        socket.endSending()
        try await eventually { try server.counters.webSockets == 0 }
        #expect(!socket.endsInOrder())
    }

    @Test("a peer that ends its side gets what was sent before") func aPeerThatEnds() throws {
        let server = try EchoServer()
        let socket = try open(server)
        let big = [UInt8](repeating: 1, count: 16 << 20)
        try server.onHandler { $0.sockets.last?.send(binary: big) }
        socket.endSending()
        var received = 0
        while case let part = socket.receive(1 << 20), !part.isEmpty { received += part.count }
        #expect(received == 10 + big.count)
    }

    @Test("answers pings") func answersPings() throws {
        let server = try EchoServer()
        let socket = try open(server)
        socket.send(WebSocketFrame.encode(.ping, [1, 2, 3], mask: 9))
        #expect(socket.receive() == [0x8A, 3, 1, 2, 3])
    }

    @Test("a client that pings and never reads gets no more pongs") func limitsUnreadPongs() async throws {
        let server = try EchoServer()
        let socket = try open(server)
        let pings = Array(
            repeatElement(WebSocketFrame.encode(.ping, [UInt8](repeating: 1, count: 125), mask: 9), count: 1000)
        )
        let burst = pings.flatMap { $0 }
        // The server reads all pings, although most of their pongs could never be sent.
        for _ in 0..<100 { socket.send(burst) }
        socket.send(WebSocketFrame.encode(.close, [], mask: 1))
        try await eventually { try server.onHandler { $0.sockets.last?.isClosed } == true }
        #expect(try #require(server.onHandler { $0.sockets.last?.pendingBytes ?? 0 }) < 400_000)
    }

    @Test("counts what a slow reader costs") func countsWhatASlow() async throws {
        let server = try EchoServer()
        let socket = try open(server)
        let big = WebSocketFrame.encode(.binary, [UInt8](repeating: 1, count: 8 << 20), mask: 3)
        socket.send(big)
        socket.send(big)
        // The echoes are larger than the kernel's buffer. No other client may wait for them.
        let other = try open(server)
        other.send(WebSocketFrame.encode(.text, Array("hi".utf8), mask: 5))
        #expect(other.receive() == [0x81, 2] + Array("hi".utf8))
        var received = 0
        while received < 2 * ((8 << 20) + 10) { received += socket.receive(1 << 20).count }
        #expect(received == 2 * ((8 << 20) + 10))
    }

    // MARK: Sent now

    @Test("a socket passes an immediate frame to the kernel unless earlier data waits") func sendsImmediately() throws {
        let server = try EchoServer()
        let socket = try open(server)
        let pending = try server.onHandler { handler -> [Int] in
            guard let own = handler.sockets.last else { return [] }
            var pending: [Int] = []
            for text in ["a", "b"] {
                own.sendNow(.text(Array(text.utf8)))
                pending.append(own.pendingBytes)
            }
            own.send(text: Array("c".utf8))
            own.sendNow(.text(Array("d".utf8)))
            return pending + [own.pendingBytes]
        }
        #expect(pending == [0, 0, 6])
        var all: [UInt8] = []
        while all.count < 12 { all += socket.receive() }
        #expect(all == "abcd".utf8.flatMap { [0x81, 1, $0] })
    }

    @Test("a socket sends the rest in order when the kernel does not take all at once") func sendsRestInOrder() throws {
        let server = try EchoServer()
        let socket = try open(server)
        let parts = (0..<8).map { [UInt8](repeating: $0, count: 4 << 20) }
        let pending = try server.onHandler { handler in
            for part in parts { handler.sockets.last?.sendNow(.binary(part)) }
            return handler.sockets.last?.pendingBytes ?? 0
        }
        #expect(try #require(pending) > 4 << 20, "more than the kernel holds")
        let expected = parts.flatMap { WebSocketFrame.encode(.binary, $0, mask: nil) }
        var all: [UInt8] = []
        while all.count < expected.count, case let part = socket.receive(1 << 20), !part.isEmpty { all += part }
        #expect(all == expected)
    }

    @Test("a peer that is gone is not heard of while it is being sent to") func aPeerThatIs() async throws {
        let server = try EchoServer()
        let socket = try open(server)
        let closed = try server.onHandler { handler in
            socket.reset()
            for _ in 0..<3 { handler.sockets.last?.sendNow(.text(Array("anybody?".utf8))) }
            return handler.sockets.closed
        }
        #expect(closed == 0)
        try await eventually { try server.onHandler { $0.sockets.closed } == 1 }
    }

    @Test("a client refuses a server that does not know the key") func aClientRefusesA() async throws {
        let loop = try EventLoop()
        defer {
            loop.stop()
            loop.join()
        }
        for (answer, status) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200),
            ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404),
            (Self.switching + "Sec-WebSocket-Accept: \(Self.key)\r\n\r\n", nil), ("no HTTP at all\r\n\r\n", nil),
        ] as [(String, Int?)] {
            let listener = try Liar(answer)
            let target = WebSocketTarget(host: "127.0.0.1", port: listener.port, path: "/")
            let error = await #expect(throws: NetError.self) { try await opened(target, on: loop) }
            #expect(error?.code == .violation)
            #expect(error?.httpStatus == status)
        }
    }

    @Test("a client gives up on a silent server") func aClientGivesUp() async throws {
        let loop = try EventLoop()
        defer {
            loop.stop()
            loop.join()
        }
        let listener = try Liar("")
        let target = WebSocketTarget(host: "127.0.0.1", port: listener.port, path: "/")
        let error = await #expect(throws: NetError.self) {
            try await opened(target, on: loop, timeout: .milliseconds(150))
        }
        #expect(error?.code == .timedOut)
    }

    static let switching = "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    static let key = "dGhlIHNhbXBsZSBub25jZQ=="
    static let handshake = """
        GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r
        Sec-WebSocket-Key: \(key)\r\n\r\n
        """

    private func open(_ server: EchoServer) throws -> RawSocket {
        let socket = try RawSocket(server.address)
        socket.send(Self.handshake)
        _ = socket.receive(until: "\r\n\r\n")
        return socket
    }

    private func opened(
        _ target: WebSocketTarget,
        on loop: EventLoop,
        timeout: Duration = .seconds(600)
    ) async throws -> String? {
        var target = target
        target.timeout = timeout
        return try await withCheckedThrowingContinuation { [target] continuation in
            loop.execute {
                let handler = Opener { continuation.resume(returning: $0) }
                WebSocketClient.connect(on: loop, to: target, handler: handler) { continuation.resume(throwing: $0) }
            }
        }
    }
}

extension WebSocketTarget {
    /// Returns the target `/ws` of a local server, with timeouts longer than any delay of a busy machine.
    static func patient(_ port: UInt16) -> WebSocketTarget {
        var target = WebSocketTarget(host: "127.0.0.1", port: port, path: "/ws")
        (target.timeout, target.closeDeadline) = (.seconds(600), .seconds(600))
        return target
    }
}

/// Sends a text that is too long for one read, and counts the parts before its end.
private final class PartCounter: WebSocketHandler {
    let done: (Int) -> Void
    var parts = 0

    init(_ done: @escaping (Int) -> Void) { self.done = done }

    func opened(_ socket: WebSocket) { socket.send(text: [UInt8](repeating: UInt8(ascii: "a"), count: 900_000)) }
    func receivedPart(from socket: WebSocket) { parts += 1 }

    func received(text: [UInt8], from socket: WebSocket) {
        done(parts)
        socket.close()
    }

    func closed(_ socket: WebSocket, code: UInt16, reason: String) {}
}

/// Sends texts, collects the echoes, and closes after the last one.
private final class Collector: WebSocketHandler {
    let payloads: [[UInt8]]
    let done: ([[UInt8]], UInt16) -> Void
    var received: [[UInt8]] = []

    init(_ payloads: [[UInt8]], _ done: @escaping ([[UInt8]], UInt16) -> Void) {
        self.payloads = payloads
        self.done = done
    }

    func opened(_ socket: WebSocket) {
        for payload in payloads { socket.send(text: payload) }
    }

    func received(text: [UInt8], from socket: WebSocket) {
        received.append(text)
        if received.count == payloads.count { socket.close() }
    }

    func closed(_ socket: WebSocket, code: UInt16, reason: String) { done(received, code) }
}

/// Reports the chosen subprotocol, and closes.
private final class Opener: WebSocketHandler {
    let done: (String?) -> Void

    init(_ done: @escaping (String?) -> Void) { self.done = done }

    func opened(_ socket: WebSocket) {
        done(socket.subprotocol)
        socket.close()
    }

    func received(text: [UInt8], from socket: WebSocket) {}
    func closed(_ socket: WebSocket, code: UInt16, reason: String) {}
}

/// A server that sends one fixed answer to its client.
private final class Liar: Sendable {
    let port: UInt16
    private let descriptor: Int32

    init(_ answer: String) throws {
        let descriptor = streamSocket()
        self.descriptor = descriptor
        let status = try SocketAddress("127.0.0.1", port: 0).withSockaddr { bind(descriptor, $0, $1) }
        guard status == 0, listen(descriptor, 8) == 0, let address = SocketAddress.of(descriptor, getsockname) else {
            throw NetError(status: -errno, "listening")
        }
        port = address.port
        DispatchQueue.global().async { [self] in
            let peer = accept(self.descriptor, nil, nil)
            _ = answer.withCString { send(peer, $0, strlen($0), Int32(MSG_NOSIGNAL)) }
            var buffer = [UInt8](repeating: 0, count: 1000)
            while read(peer, &buffer, buffer.count) > 0 {}
            close(peer)
        }
    }

    deinit { close(descriptor) }
}
