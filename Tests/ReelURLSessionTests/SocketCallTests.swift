import Foundation
import ReelClient
import Synchronization
import TestSupport
import Testing

@testable import ReelURLSession

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A WebSocket whose task is a script, because the `URLSession` of Linux has none.
@Suite(.timeLimit(.minutes(5))) struct SocketCallTests {
    private struct Reset: Error {}

    /// A task that keeps what a socket asks of it, until the test answers.
    private final class Script: SocketTask, Sendable {
        private struct State {
            var log: [String] = []
            var reads: [@Sendable (Result<URLSessionWebSocketTask.Message, any Error>) -> Void] = []
            var writes: [@Sendable ((any Error)?) -> Void] = []
        }

        private let state = Mutex(State())

        var log: [String] { state.withLock { $0.log } }

        func resume() { state.withLock { $0.log.append("resume") } }

        func send(_ text: String, then: @escaping @Sendable ((any Error)?) -> Void) {
            state.withLock { state in
                state.log.append("send \(text)")
                state.writes.append(then)
            }
        }

        func receive(then: @escaping @Sendable (Result<URLSessionWebSocketTask.Message, any Error>) -> Void) {
            state.withLock { state in
                state.log.append("receive")
                state.reads.append(then)
            }
        }

        func ping(then: @escaping @Sendable ((any Error)?) -> Void) {
            state.withLock { state in
                state.log.append("ping")
                state.writes.append(then)
            }
        }

        func cancel(_ code: Int, _ reason: String) { state.withLock { $0.log.append("cancel \(code)") } }

        /// Answers the oldest read. From another thread than that of the socket, as `URLSession` may do.
        func deliver(_ result: Result<URLSessionWebSocketTask.Message, any Error>) {
            state.withLock { $0.reads.isEmpty ? nil : $0.reads.removeFirst() }?(result)
        }

        /// Answers the oldest message or ping.
        func finish(_ error: (any Error)? = nil) {
            state.withLock { $0.writes.isEmpty ? nil : $0.writes.removeFirst() }?(error)
        }
    }

    private final class Setting: Sendable {
        let executor = QueueExecutor()
        let script = Script()
        let heard = Mutex<[String]>([])
        let socket = Mutex<SocketCall?>(nil)

        init(openMs: Int64 = 60_000, closeMs: Int64 = 1) {
            var limits = TransportLimits()
            (limits.openMs, limits.closeMs) = (openMs, closeMs)
            let socket = SocketCall(executor, DelayedCall.Timers(), limits) { [weak self] event in
                self?.executor.checkIsolated()
                let text =
                    switch event {
                    case .text(let bytes): "text \(String(decoding: bytes, as: UTF8.self))"
                    case .closed(let reason): "closed \(reason)"
                    default: "\(event)"
                    }
                self?.heard.withLock { $0.append(text) }
            }
            self.socket.withLock { $0 = socket }
            use { $0.start(self.script, openMs: openMs) }
        }

        func use(_ body: @escaping @Sendable (SocketCall) -> Void) {
            let socket = socket.withLock { $0 }
            executor.execute { if let socket { body(socket) } }
        }

        /// Waits until the socket has reported the last of these texts, and compares all.
        func expects(_ texts: String...) async throws {
            try await eventually("\(texts)", seconds: 20) { heard.withLock { $0.count } >= texts.count }
            #expect(heard.withLock { $0 } == texts)
        }
    }

    @Test("a socket reads one message at a time, sends, and reports the code of its end") func whole() async throws {
        let setting = Setting()
        setting.use { $0.handle(.opened(subprotocol: "reel.v1")) }
        try await setting.expects("opened")
        #expect(setting.script.log == ["resume", "receive"])
        setting.script.deliver(.success(.string("{}")))
        try await setting.expects("opened", "text {}")
        setting.use { socket in
            socket.send(Array("é".utf8))
            socket.ping(7)
        }
        try await eventually("both") { setting.script.log.count == 5 }
        #expect(setting.script.log.suffix(3) == ["receive", "send é", "ping"])
        setting.script.finish()
        setting.script.finish()
        try await setting.expects("opened", "text {}", "pong(7)")
        setting.script.deliver(.failure(Reset()))
        setting.use { $0.handle(.closed(code: 4001, reason: "drain")) }
        try await setting.expects("opened", "text {}", "pong(7)", "closed closed with 4001 drain")
    }

    @Test("a binary message closes the socket with 1003") func binary() async throws {
        let setting = Setting()
        setting.use { $0.handle(.opened(subprotocol: nil)) }
        try await setting.expects("opened")
        setting.script.deliver(.success(.data(Data([0]))))
        try await setting.expects("opened", "closed closed with 1003 binary messages are not understood")
        #expect(setting.script.log.last == "cancel 1003")
    }

    @Test("a broken connection ends the socket, whether a read or a message fails", arguments: [true, false])
    func broken(byReading: Bool) async throws {
        let setting = Setting()
        setting.use { socket in
            socket.handle(.opened(subprotocol: nil))
            socket.send(Array("{}".utf8))
        }
        try await eventually("the message") { setting.script.log.last == "send {}" }
        if byReading { setting.script.deliver(.failure(Reset())) } else { setting.script.finish(Reset()) }
        try await eventually("the end") { setting.heard.withLock { $0.last }?.hasPrefix("closed") == true }
        #expect(setting.heard.withLock { $0.count } == 2)
    }

    @Test("a handshake that takes too long ends the socket") func slowHandshake() async throws {
        let setting = Setting(openMs: 5)
        try await setting.expects("closed a WebSocket's handshake took more than 5 ms")
        #expect(setting.script.log == ["resume", "cancel 1001"])
    }

    @Test("an owner that closes the socket hears nothing more") func closed() async throws {
        let setting = Setting()
        setting.use { socket in
            socket.handle(.opened(subprotocol: nil))
            socket.close()
            socket.send(Array("{}".utf8))
        }
        setting.script.deliver(.success(.string("{}")))
        setting.use { socket in
            socket.handle(.failed("cancelled"))
            setting.heard.withLock { $0.append("last") }
        }
        try await setting.expects("opened", "last")
        #expect(setting.script.log == ["resume", "receive", "cancel 1000"])
    }
}
