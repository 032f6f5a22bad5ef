import ReelClient
import TestSupport
import Testing

@testable import ReelURLSession

/// The progress of a WebSocket, on recorded events.
@Suite struct SocketStateTests {
    private static var limits: TransportLimits {
        var limits = TransportLimits()
        (limits.messageBytes, limits.unsentBytes, limits.pings) = (8, 10, 2)
        return limits
    }

    /// Returns the outputs of a socket for some inputs, as texts.
    private func outputs(_ inputs: SocketState.Input...) -> [String] {
        var state = SocketState(Self.limits)
        return inputs.flatMap { state.handle($0) }.map(\.text)
    }

    @Test("a socket opens, reads one message after the other, and ends with the node's code") func whole() {
        let found = outputs(
            .opened(subprotocol: "reel.v1"),
            .text("{}"),
            .text("äé"),
            .closed(code: 4001, reason: "drain"),
            .text("{}"),
            .failed("late")
        )
        #expect(
            found == [
                "timer -", "opened", "read", "text {}", "read", "text äé", "read", "timer -",
                "end closed with 4001 drain",
            ]
        )
    }

    @Test("nothing is sent before the handshake and after the end") func sendsWhileOpen() {
        #expect(outputs(.send(1), .ping, .opened(subprotocol: nil)) == ["timer -", "opened", "read"])
        #expect(outputs(.opened(subprotocol: nil), .send(1), .ping).suffix(2) == ["send", "send"])
        #expect(outputs(.failed("refused"), .send(1), .ping, .close) == ["timer -", "end refused"])
    }

    @Test("a handshake that takes too long ends, and so does one with another subprotocol") func handshake() {
        #expect(outputs(.deadline) == ["close 1001", "end a WebSocket's handshake took more than 10000 ms"])
        let other = outputs(.opened(subprotocol: "chat"))
        #expect(
            other == ["timer -", "close 1002", "end closed with 1002 a WebSocket subprotocol that was not offered"]
        )
        #expect(outputs(.opened(subprotocol: "")).contains("opened"))
    }

    @Test("a message that is binary or too long closes the socket") func refused() {
        let binary = outputs(.opened(subprotocol: nil), .binary).suffix(3)
        #expect(binary == ["timer -", "close 1003", "end closed with 1003 binary messages are not understood"])
        #expect(outputs(.opened(subprotocol: nil), .text("12345678")).suffix(2) == ["text 12345678", "read"])
        let long = outputs(.opened(subprotocol: nil), .text("123456789")).suffix(3)
        #expect(long == ["timer -", "close 1009", "end closed with 1009 a message of more than 8 bytes"])
        // The limit is one of bytes.
        #expect(outputs(.opened(subprotocol: nil), .text("ääääé")).contains("close 1009"))
    }

    @Test("pings are answered with their numbers, and few are awaited") func pings() {
        let found = outputs(.opened(subprotocol: nil), .ping, .ping, .ping, .pong(1), .ping, .ping).dropFirst(3)
        #expect(found == ["send", "send", "pong 1", "send"])
    }

    @Test("a node that takes no bytes loses its connection") func unsent() {
        let opened = SocketState.Input.opened(subprotocol: nil)
        #expect(outputs(opened, .send(6), .send(4)).suffix(2) == ["send", "send"])
        #expect(outputs(opened, .send(6), .sent(6), .send(10)).suffix(2) == ["send", "send"])
        #expect(outputs(opened, .send(6), .send(5)).suffix(2).first == "close 1001")
    }

    @Test("a read that fails waits a moment for the node's close code") func failedRead() {
        let opened = SocketState.Input.opened(subprotocol: nil)
        let coded = outputs(opened, .readFailed("reset"), .send(1), .closed(code: 1013, reason: "busy")).dropFirst(3)
        #expect(coded == ["timer 1000", "timer -", "end closed with 1013 busy"])
        let silent = outputs(opened, .readFailed("reset"), .readFailed("again"), .deadline).dropFirst(3)
        #expect(silent == ["timer 1000", "close 1001", "end reset"])
    }

    @Test("an owner that has closed the socket hears nothing more") func closed() {
        #expect(outputs(.close, .opened(subprotocol: nil), .failed("cancelled")) == ["timer -", "close 1000"])
        #expect(
            outputs(.opened(subprotocol: nil), .close, .text("{}"), .pong(1)).suffix(2) == ["timer -", "close 1000"]
        )
    }

    @Test("in any order of events, a socket opens at most once, ends at most once, and does nothing after its end")
    func anyOrder() {
        Seeds.run(5_000) { seed in
            var random = SeededNumbers(seed)
            var state = SocketState(Self.limits)
            var found: [String] = []
            for _ in 0..<20 {
                let inputs: [SocketState.Input] = [
                    .opened(subprotocol: nil), .text("12"), .binary, .pong(1), .sent(1), .readFailed("r"), .failed("f"),
                    .closed(code: 1000, reason: ""), .deadline, .send(3), .ping, .close,
                ]
                // Most events keep the socket open.
                let index = random.below(4) > 0 ? [0, 1, 3, 9, 10][random.below(5)] : random.below(inputs.count)
                found += state.handle(inputs[index]).map(\.text)
            }
            let ends = found.indices.filter { found[$0].hasPrefix("end") || found[$0] == "close 1000" }
            #expect(
                ends.count <= 1 && (ends.first ?? found.count - 1) == found.count - 1,
                "REEL_SEED=\(seed): \(found)"
            )
            #expect(found.count { $0 == "opened" } <= 1, "REEL_SEED=\(seed)")
            let first = found.first { $0.hasPrefix("text") || $0.hasPrefix("pong") || $0 == "send" || $0 == "opened" }
            #expect(first == nil || first == "opened", "REEL_SEED=\(seed): \(found)")
        }
    }
}

extension SocketState.Output {
    fileprivate var text: String {
        switch self {
        case .report(.opened): "opened"
        case .report(.text(let text)): "text \(String(decoding: text, as: UTF8.self))"
        case .report(.pong(let number)): "pong \(number)"
        case .report(let other): "\(other)"
        case .end(let reason): "end \(reason)"
        case .read: "read"
        case .send: "send"
        case .startTimer(let ms): "timer \(ms)"
        case .stopTimer: "timer -"
        case .close(let code, _): "close \(code)"
        }
    }
}
