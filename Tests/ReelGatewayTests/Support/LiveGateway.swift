import EventLogConformance
import Foundation
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import Synchronization
import TestSupport
import Testing

@testable import ReelGateway

/// A gateway on 127.0.0.1, with the means to talk to it.
final class LiveGateway: Sendable {
    let log: any EventLog
    let gateway: Gateway
    private let loop: EventLoop
    let http: LoopBound<HTTPClient>
    private let lines: Lines
    /// The gateway's metrics; a node with keys shows them only to operators.
    private let metrics = Metrics()

    /// Starts a gateway.
    ///
    /// - Parameter state: The source that answers questions about state in this process.
    init(
        _ log: any EventLog,
        state: (any StateSource)? = nil,
        _ change: (inout GatewaySettings) -> Void = { _ in }
    ) throws {
        var settings = GatewaySettings.forTests
        change(&settings)
        self.log = log
        let lines = Lines()
        self.lines = lines
        let logger = Logger(threshold: .debug) { lines.add($0) }
        gateway = try Gateway(log: log, settings: settings, logger: logger, metrics: metrics, state: state)
        let loop = try EventLoop()
        self.loop = loop
        http = try loop.sync { LoopBound(HTTPClient(on: loop), on: loop) }
    }

    /// All log lines of the gateway.
    var journalLines: [String] { lines.all }

    /// Returns the gateway's log lines of this event.
    func logLines(_ event: String) -> [String] {
        lines.all.filter { $0.contains("event=\(event) ") || $0.contains("event=\"\(event)\" ") }
    }

    /// Waits until there are `count` log lines of this event. The state that a line reports
    /// may be visible before the line.
    func logLines(_ event: String, has count: Int) async throws {
        try await eventually("\(count) lines of \(event)") { logLines(event).count == count }
    }

    /// The text of all metrics, as an operator reads it.
    var metricsText: String { metrics.text() }

    /// Returns the value of a metric; the name includes the labels as the text shows them.
    func metric(_ name: String) async throws -> Int? { try await shown(name).flatMap { Int($0) } }

    /// Returns the value of a metric that is not a whole number.
    func seconds(_ name: String) async throws -> Double? { try await shown(name).flatMap { Double($0) } }

    private func shown(_ metric: String) async throws -> Substring? {
        // A request runs on the loop, so earlier work of the loop is done after it.
        _ = try await get("/healthz")
        return metrics.text().split(separator: "\n").first { $0.hasPrefix(metric + " ") }?.dropFirst(metric.count + 1)
    }

    /// The timeout of every request of a test.
    static let patience = Duration.seconds(1_000)

    /// Returns the body of `/readyz`, and checks that its first member agrees with the status.
    func ready() async throws -> String {
        let answer = try await get("/readyz")
        let body = String(decoding: answer.body, as: UTF8.self)
        #expect(body.hasPrefix(#"{"ready":\#(answer.status == 200)"#), "\(answer.status): \(body)")
        return body
    }

    /// Waits until the gateway, and each of its loops, has read the records that the log held at the start. The loops
    /// get the records a little later than the gateway.
    func started() async throws {
        try await eventually("the gateway is ready") { try await get("/readyz").status == 200 }
        let goals = (0..<log.partitions).map { gateway.context.health.goal(of: $0) }
        for part in gateway.parts {
            try await eventually("its loop has it") {
                try await part.loop.run { zip(part.value.gateway.rings, goals).allSatisfy { $0.head >= $1 } }
            }
        }
    }

    /// Waits until `/readyz` reports this state of the log.
    func state(becomes state: String) async throws {
        try await eventually("the log is \(state)") { try await ready().contains(#""log":"\#(state)""#) }
    }

    /// Waits until the list of nodes contains this text.
    func cluster(contains text: String) async throws {
        try await eventually("the cluster shows \(text)") {
            String(decoding: try await get("/v1/cluster").body, as: UTF8.self).contains(text)
        }
    }

    /// Waits until the log holds this seq.
    func log(holds seq: Seq, in partition: Int) async throws {
        try await eventually("the log holds \(partition):\(seq)") { try log.bounds(partition).last >= seq }
    }

    /// Ends the gateway without a drain.
    func end() async {
        gateway.end.begin()
        gateway.end.begin()
        await gateway.waitUntilEnded()
        loop.stop()
        loop.join()
    }

    /// Runs the body with a gateway and ends the gateway, also if the body throws. By default, the gateway has read
    /// the records that its log held.
    static func with(
        _ log: (any EventLog)? = nil,
        _ change: (inout GatewaySettings) -> Void = { _ in },
        hasStarted: Bool = true,
        _ body: (LiveGateway) async throws -> Void
    ) async throws {
        let live = try LiveGateway(log ?? MemoryLog(), change)
        do {
            if hasStarted { try await live.started() }
            try await body(live)
        } catch {
            await live.end()
            live.log.close()
            throw error
        }
        await live.end()
        live.log.close()
    }

    func get(_ target: String) async throws -> HTTPResponse {
        try await ask("GET", target)
    }

    func ask(
        _ method: String,
        _ target: String,
        body: String = "",
        headers: HTTPHeaders = HTTPHeaders()
    ) async throws -> HTTPResponse {
        var request = HTTPClientRequest(
            method,
            host: gateway.address.host,
            port: gateway.address.port,
            target: target,
            body: Array(body.utf8)
        )
        request.headers = headers
        request.timeout = Self.patience
        return try await http.fetch(request)
    }

    /// Returns a socket that has sent `hello` and got `welcome`.
    func connect() async throws -> TestSocket {
        let socket = try await open()
        socket.send(#"{"t":"hello","client":"test/1"}"#)
        _ = try await socket.next { if case .welcome = $0.body { true } else { false } }
        return socket
    }

    /// Returns an open socket that has sent no frame.
    func open(_ headers: HTTPHeaders = HTTPHeaders()) async throws -> TestSocket {
        let socket = TestSocket(loop)
        try await socket.open(gateway.address, headers)
        return socket
    }
}

/// A socket of a test. It keeps the frames that it receives, in order, until the test takes them.
final class TestSocket: Sendable {
    private struct State {
        var frames: [ServerFrame] = []
        var closed: UInt16?
        var socket: LoopBound<WebSocket>?
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    struct Missing: Error {
        var heard: [ServerFrame]
        var closed: UInt16?
    }

    private let state = Mutex(State())
    private let loop: EventLoop

    init(_ loop: EventLoop) {
        self.loop = loop
    }

    func open(_ address: SocketAddress, _ headers: HTTPHeaders) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            loop.execute { [self] in
                var target = WebSocketTarget(
                    host: address.host,
                    port: address.port,
                    path: "/v1/socket",
                    subprotocols: ["reel.v1"]
                )
                target.headers = headers
                target.timeout = LiveGateway.patience
                let handler = Handler(self) { continuation.resume() }
                WebSocketClient.connect(on: loop, to: target, handler: handler) { continuation.resume(throwing: $0) }
            }
        }
    }

    func send(_ text: String) {
        send(bytes: Array(text.utf8))
    }

    func send(bytes: [UInt8]) {
        loop.execute { [self] in state.withLock { $0.socket }?.value.send(text: bytes) }
    }

    func send(_ body: ClientFrame.Body, ref: String? = nil) {
        send(bytes: ClientFrame(body, ref: ref.map { Array($0.utf8) }).encoded())
    }

    /// Stops reading, as a slow client does.
    func pause() {
        loop.execute { [self] in state.withLock { $0.socket }?.value.pauseReading() }
    }

    func resume() {
        loop.execute { [self] in state.withLock { $0.socket }?.value.resumeReading() }
    }

    func close() {
        loop.execute { [self] in state.withLock { $0.socket }?.value.close() }
    }

    /// The time to wait for a frame; on a busy machine any frame may be late.
    private let patience = Duration.seconds(100)

    /// The frames that were received and not taken yet.
    var heard: [ServerFrame] { state.withLock { $0.frames } }

    /// Takes the first frame that `isMeant` accepts, and leaves the frames before it. Throws if the socket is closed
    /// or no such frame comes in time.
    func next(_ isMeant: @Sendable (ServerFrame) -> Bool) async throws -> ServerFrame {
        let limit = ContinuousClock.now + patience
        while true {
            let (found, closed): (ServerFrame?, UInt16?) = state.withLock { state in
                guard let index = state.frames.firstIndex(where: isMeant) else { return (nil, state.closed) }
                return (state.frames.remove(at: index), nil)
            }
            if let found { return found }
            guard closed == nil, ContinuousClock.now < limit else { throw Missing(heard: heard, closed: closed) }
            await changed()
        }
    }

    /// Returns the code with which the gateway closed the socket.
    func closeCode() async throws -> UInt16 {
        let limit = ContinuousClock.now + patience
        while ContinuousClock.now < limit {
            if let code = state.withLock({ $0.closed }) { return code }
            await changed()
        }
        throw Missing(heard: heard, closed: nil)
    }

    /// Waits until the state changes, at most 100 ms.
    private func changed() async {
        let loop = loop
        await withCheckedContinuation { continuation in
            state.withLock { $0.waiting.append(continuation) }
            loop.execute { loop.timer(after: .milliseconds(100)) { self.wake() } }
        }
    }

    private func wake() {
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    private func heard(_ frame: ServerFrame) {
        state.withLock { $0.frames.append(frame) }
        wake()
    }

    private final class Handler: WebSocketHandler {
        let test: TestSocket
        var opened: (() -> Void)?

        init(_ test: TestSocket, _ opened: @escaping () -> Void) {
            self.test = test
            self.opened = opened
        }

        func opened(_ socket: WebSocket) {
            test.state.withLock { $0.socket = LoopBound(socket, on: socket.loop) }
            opened?()
            opened = nil
        }

        func received(text: [UInt8], from socket: WebSocket) {
            do {
                test.heard(
                    try text.withUnsafeBufferPointer { (bytes) throws(ReelError) in try ServerFrame(Bytes(bytes)) }
                )
            } catch {
                Issue.record("the gateway said \(String(decoding: text, as: UTF8.self)): \(error)")
            }
        }

        func closed(_ socket: WebSocket, code: UInt16, reason: String) {
            test.state.withLock { $0.closed = code }
            test.wake()
        }
    }
}

extension HTTPServer.Settings {
    /// Settings of a server whose clients may wait long for a processor.
    static var patient: HTTPServer.Settings {
        var settings = HTTPServer.Settings()
        settings.headDeadline = LiveGateway.patience
        settings.idleDeadline = LiveGateway.patience
        return settings
    }
}

/// Events in the form that a client sends.
enum Sent {
    static func insert(_ site: Site, _ op: Op, _ id: String, _ title: String = "x") -> [UInt8] {
        EventText.sent("insert", site, op, #""model":"task","id":"\#(id)","fields":{"title":"\#(title)"}"#).bytes
    }
}

extension TestSocket {
    func nextAck() async throws -> ServerFrame.Ack {
        guard case .ack(let ack) = try await next({ if case .ack = $0.body { true } else { false } }).body else {
            throw Missing(heard: heard)
        }
        return ack
    }

    func nextNack() async throws -> ServerFrame.Nack {
        guard case .nack(let nack) = try await next({ if case .nack = $0.body { true } else { false } }).body else {
            throw Missing(heard: heard)
        }
        return nack
    }

    func nextError() async throws -> ServerFrame.Failure {
        guard case .error(let error) = try await next({ if case .error = $0.body { true } else { false } }).body else {
            throw Missing(heard: heard)
        }
        return error
    }

    func nextSubscribed() async throws -> ServerFrame.Subscribed {
        let frame = try await next { if case .subscribed = $0.body { true } else { false } }
        guard case .subscribed(let subscribed) = frame.body else { throw Missing(heard: heard) }
        return subscribed
    }

    /// Takes `events` and `upto` frames until they prove the stream up to the seq. Returns the events.
    func events(
        of stream: StreamName,
        partition: Int,
        after: Seq,
        through seq: Seq
    ) async throws -> [DeliveredEvent] {
        var proven = after
        var events: [DeliveredEvent] = []
        while proven < seq {
            let frame = try await next { frame in
                switch frame.body {
                case .events(let events): events.stream == stream
                case .upto(partition, _): true
                default: false
                }
            }
            switch frame.body {
            case .events(let more):
                #expect(more.from == proven + 1, "pushed events go on from the last proven seq")
                events += more.events
                proven = more.to
            case .upto(_, let upto): proven = max(proven, upto)
            default: break
            }
        }
        return events
    }
}
