import Foundation
import Synchronization
import Testing

@testable import ReelNet

@Suite struct WebSocketTests {
    @Test func echoesThroughItsOwnClient() async throws {
        let server = try EchoServer()
        let loop = try EventLoop()
        defer {
            loop.stop()
            loop.join()
        }
        let payloads = [0, 1, 125, 126, 65535, 65536, 1_000_000].map {
            [UInt8](repeating: UInt8(ascii: "a"), count: $0)
        }
        let (received, code): ([[UInt8]], UInt16) = try await withCheckedThrowingContinuation { continuation in
            loop.execute {
                let target = WebSocketTarget(host: "127.0.0.1", port: server.address.port, path: "/ws")
                let handler = Collector(payloads) { continuation.resume(returning: ($0, $1)) }
                WebSocketClient.connect(on: loop, to: target, handler: handler) { continuation.resume(throwing: $0) }
            }
        }
        #expect(received == payloads)
        #expect(code == 1000)
    }
}

/// Sends texts, gathers what comes back, closes behind the last.
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
