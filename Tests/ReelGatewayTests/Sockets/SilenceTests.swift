import Foundation
import ReelCore
import ReelNet
import Testing

@testable import ReelGateway

/// Tests clients that do not read, do not answer, or do not finish a message, beside clients that are only slow. The
/// clock moves only when a test moves it.
@Suite struct SilenceTests {
    private let still: StillGateway
    private let client: SocketClient
    private let wire: Wire

    init() throws {
        still = try StillGateway()
        (client, wire) = still.connect()
    }

    /// Answers the last ping, as a client that reads does.
    private func answer() {
        if let ping = wire.pings.last { client.received(pong: ping) }
    }

    private func say(_ text: String) { client.received(text: Array(text.utf8)) }

    @Test("the gateway resets a client that reads none of its backlog, whatever the client sends")
    func resetsNonReader() {
        wire.fill(4 << 20)
        still.pass(seconds: 60) { second in
            client.received(pong: [])
            if second % 10 == 0 { say(#"{"t":"unsubscribe","stream":"todo"}"#) }
        }
        #expect(!wire.isClosed)
        still.pass(seconds: 2) { _ in client.received(pong: []) }
        #expect(wire.wasReset)
    }

    @Test("the gateway resets a client that reads only a few bytes now and then") func resetsTricklingReader() {
        wire.fill(4 << 20)
        still.pass(seconds: 63) { _ in
            wire.left -= SlowReaderDetector.bytesMin / 100
            say(#"{"t":"unsubscribe","stream":"todo"}"#)
        }
        #expect(wire.wasReset)
    }

    @Test("a client that reads enough stays connected without answers to pings") func keepsReaderWithoutPong() {
        wire.fill(4 << 20)
        still.pass(seconds: 1_000) { _ in wire.left -= 1_000 }
        #expect(!wire.isClosed)
        still.pass(seconds: 130)
        #expect(wire.wasReset, "it has stopped")
    }

    @Test("the gateway checks the kernel's send buffer when a client answers no ping") func checksKernelBuffer() {
        wire.kernelBytes = 4 << 20
        wire.fill(4 << 20)
        still.pass(seconds: 1_000) { _ in wire.left -= 1_000 }
        #expect(!wire.isClosed)
        still.pass(seconds: 170)
        #expect(wire.wasReset)
    }

    @Test("a client that reads through a proxy has time for the bytes before the ping") func allowsProxyDelay() {
        // The proxy has taken all bytes at once. At 8 kB/s the client needs 500 s to read them.
        wire.fill(4_000_000)
        wire.left = 0
        still.pass(seconds: 500)
        #expect(!wire.isClosed)
        answer()
        still.pass(seconds: 40)
        #expect(!wire.isClosed, "it has read all, and has as long for the next as anybody")
        still.pass(seconds: 4)
        #expect(wire.closeCode == 1008)
    }

    @Test("the gateway finally closes a client that never reads the bytes in its proxy") func closesSilentProxyClient()
    {
        wire.fill(4_000_000)
        wire.left = 0
        still.pass(seconds: 610)
        #expect(wire.closeCode == 1008)
    }

    @Test("only the pong to its own ping is a sign of life") func onlyThePongTo() {
        still.pass(seconds: 44) { _ in
            client.received(pong: [])
            client.received(pong: [1, 2, 3, 4, 5])
        }
        #expect(wire.pings.count == 2)
        #expect(wire.closeCode == 1008)
    }

    @Test("the ping is the same until it is answered") func thePingIsThe() {
        still.pass(seconds: 35)
        #expect(wire.pings.count == 2)
        #expect(wire.pings[0] == wire.pings[1], "who answers the first late has answered")
        client.received(pong: wire.pings[0])
        still.pass(seconds: 24)
        #expect(wire.pings.count == 2)
        still.pass(seconds: 3) { _ in answer() }
        #expect(wire.pings.count == 3)
        #expect(!wire.isClosed)
    }

    @Test("a message that does not end is not waited for") func aMessageThatDoes() {
        wire.partBytes = 1
        still.pass(seconds: 33) { second in if second % 10 == 9 { wire.partBytes? += 1 } }
        #expect(wire.closeCode == 1008)
    }

    @Test("a message that comes slowly is waited for") func aMessageThatComes() {
        // At 2 kB/s a message of 1 MB takes more than 500 s, and no pong can come before its end.
        wire.partBytes = 0
        still.pass(seconds: 500) { _ in wire.partBytes? += 2_000 }
        #expect(!wire.isClosed)
        wire.partBytes = nil
        say(#"{"t":"unsubscribe","stream":"todo"}"#)
        wire.partBytes = 1
        still.pass(seconds: 25) { _ in answer() }
        #expect(!wire.isClosed, "the next one has its own time")
    }

    @Test("the metrics show the backlog and count the reason for each closed socket") func countsCloseReasons() {
        wire.fill(3 << 20)
        still.pass(seconds: 1)
        #expect(still.metric("reel_gateway_send_queue_bytes") == 3 << 20)
        #expect(still.metric("reel_gateway_backlogged_connections") == 1)
        wire.left = 1 << 20
        still.pass(seconds: 1)
        #expect(still.metric("reel_gateway_send_queue_bytes") == 1 << 20)
        #expect(still.metric("reel_gateway_backlogged_connections") == 0)
        still.pass(seconds: 130)
        #expect(wire.wasReset)
        client.closed()
        still.pass(seconds: 1)
        #expect(still.metric("reel_gateway_send_queue_bytes") == 0)
        #expect(still.metric(#"reel_gateway_closed_total{reason="slow"}"#) == 1)
    }

    @Test("each end is counted under its reason") func eachEndIsCounted() {
        func ends(_ reason: String, code: UInt16 = 1006, _ body: (SocketClient, Wire) -> Void) {
            let before = still.metric(#"reel_gateway_closed_total{reason="\#(reason)"}"#) ?? 0
            let (client, wire) = still.connect()
            body(client, wire)
            client.closed(code: code)
            #expect(still.metric(#"reel_gateway_closed_total{reason="\#(reason)"}"#) == before + 1, "\(reason)")
        }
        ends("client") { _, _ in }
        ends("framing", code: 1007) { _, _ in }
        ends("hello") { client, _ in client.received(text: Array(#"{"t":"hello","client":"test/1"}"#.utf8)) }
        ends("errors") { client, _ in for _ in 0..<100 { client.received(text: []) } }
        ends("unread") { client, wire in
            wire.fill(9 << 20)
            client.received(text: Array(#"{"t":"unsubscribe","stream":"todo"}"#.utf8))
        }
        ends("token") { client, _ in client.refuseEntry(ReelError(.unauthorized, "no"), ref: nil) }
        ends("unfinished") { _, wire in
            wire.partBytes = 1
            still.pass(seconds: 33)
        }
        ends("silent") { _, _ in still.pass(seconds: 42) }
        ends("leave") { client, _ in
            client.askToLeave(afterMs: 10, nodes: [])
            still.pass(seconds: 1)
        }
    }

    @Test("the page names every reason") func thePageNamesEvery() throws {
        let repository = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let page = try String(contentsOf: repository.appending(path: "docs/reference/metrics.md"), encoding: .utf8)
        for end in SocketEnd.allCases { #expect(page.contains("| `\(end.rawValue)` |")) }
    }

    @Test("the gateway reads input that arrived during a loop stall before it closes the client")
    func readsInputAfterStall() {
        wire.partBytes = 1
        still.pass(seconds: 20)
        still.loop.pass(ms: 20_000)
        still.gateway.tick()
        #expect(!wire.isClosed, "the rest may wait in the kernel")
        wire.partBytes = nil
        say(#"{"t":"unsubscribe","stream":"todo"}"#)
        still.pass(seconds: 1)
        #expect(!wire.isClosed)
    }
}
