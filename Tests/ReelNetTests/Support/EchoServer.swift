import Foundation
import Synchronization

@testable import ReelNet

/// A server that echoes bodies and messages, on a loop of its own, for one test.
final class EchoServer: Sendable {
    let loop: EventLoop
    let address: SocketAddress
    private let server: LoopBound<HTTPServer>

    init(_ settings: HTTPServer.Settings = .patient, gate: ConnectionGate = .init(limit: 10_000)) throws {
        let loop = try EventLoop()
        self.loop = loop
        (server, address) = try loop.sync {
            let server = HTTPServer(on: loop, settings, gate: gate, handler: EchoHandler())
            let address = try server.listen(on: SocketAddress("127.0.0.1", port: 0))
            return (LoopBound(server, on: loop), address)
        }
    }

    /// Creates a server that ends a connection after this time without progress.
    convenience init(idleDeadline: Duration) throws {
        var settings = HTTPServer.Settings.patient
        settings.idleDeadline = idleDeadline
        try self.init(settings)
    }

    deinit {
        loop.stop()
        loop.join()
    }

    var counters: HTTPServer.Counters {
        get throws { try loop.sync { [server] in server.value.counters } }
    }

    func onHandler<T: Sendable>(_ body: @escaping @Sendable (EchoHandler) -> T) throws -> T? {
        try onServer { ($0.handler as? EchoHandler).map(body) }
    }

    func onServer<T: Sendable>(_ body: @escaping @Sendable (HTTPServer) -> T) throws -> T {
        try loop.sync { [server] in body(server.value) }
    }
}

extension HTTPServer.Settings {
    /// Settings with timeouts that are longer than any delay of a busy machine.
    static var patient: HTTPServer.Settings {
        var settings = HTTPServer.Settings()
        (settings.headDeadline, settings.bodyDeadline) = (.seconds(600), .seconds(600))
        (settings.idleDeadline, settings.closeDeadline) = (.seconds(600), .seconds(600))
        return settings
    }
}

/// The handler of the echo server.
///
/// - `/echo` returns the body.
/// - `/stream?bytes=N` streams N bytes at the pace of the reader.
/// - `/whole?bytes=N` returns N bytes in one body.
/// - `/later` answers from another thread.
/// - `/never` does not answer.
/// - `/health` returns 200, also when the server is full.
/// - `/unchanged` returns 304.
/// - `/every-second` aborts every second request.
/// - A WebSocket on any path except `/refused` echoes messages.
final class EchoHandler: HTTPHandler {
    let sockets = EchoSockets()
    private var flaky = 0
    /// The largest number of pending bytes that a connection has had.
    private(set) var mostPending = 0

    func respond(to request: HTTPRequest, _ exchange: HTTPExchange) {
        switch request.head.path {
        case "/echo":
            mostPending = max(mostPending, exchange.pendingBytes)
            exchange.respond(HTTPResponse(status: 200, body: request.body))
        case "/later":
            exchange.loop.offload({ 7 }) { exchange.respond(HTTPResponse(status: 200, body: Array("\($0)".utf8))) }
        case "/never": break
        case "/health": exchange.respond(HTTPResponse(status: 200))
        case "/unchanged": exchange.respond(HTTPResponse(status: 304, headers: ["etag": "\"1\""]))
        case "/every-second":
            flaky += 1
            if flaky.isMultiple(of: 2) { exchange.abort() } else { exchange.respond(HTTPResponse(status: 200)) }
        case "/whole":
            exchange.respond(HTTPResponse(status: 200, body: [UInt8](repeating: 0, count: Self.bytes(request))))
        case "/stream":
            let bytes = Self.bytes(request)
            exchange.start(status: 200, headers: ["content-type": "application/octet-stream"])
            stream(bytes, exchange)
        default: exchange.respond(HTTPResponse(status: 404, body: Array("not here\n".utf8)))
        }
    }

    private static func bytes(_ request: HTTPRequest) -> Int {
        request.head.parameters?.first { $0.name == "bytes" }.flatMap { Int($0.value) } ?? 0
    }

    private func stream(_ bytes: Int, _ exchange: HTTPExchange) {
        var left = bytes
        let chunk = [UInt8](repeating: UInt8(ascii: "x"), count: 100_000)
        func more() {
            while left > 0, exchange.pendingBytes < 300_000 {
                exchange.write(Array(chunk.prefix(left)))
                left -= min(left, chunk.count)
                mostPending = max(mostPending, exchange.pendingBytes)
            }
            if left == 0 { exchange.end() }
        }
        exchange.drained = more
        more()
    }

    func upgrade(_ offer: WebSocketOffer) -> WebSocketDecision {
        guard offer.head.path != "/refused" else { return .refuse(HTTPResponse(status: 404)) }
        return .accept(subprotocol: offer.subprotocols.first, maxMessage: 64 << 20, handler: sockets)
    }

    func refusal(of head: HTTPRequestHead) -> HTTPResponse? {
        head.path == "/refused" ? HTTPResponse(status: 401) : nil
    }

    func isHealthCheck(_ head: HTTPRequestHead) -> Bool { head.path == "/health" }

    func refusal(of violation: HTTPViolation) -> HTTPResponse {
        HTTPResponse(status: violation.status, body: Array("\(violation.detail)\n".utf8))
    }
}

final class EchoSockets: WebSocketHandler {
    /// The socket that was opened last.
    private(set) var last: WebSocket?
    private(set) var closed = 0
    /// Called before the answer to a text.
    var beforeText: ((String) -> Void)?

    func opened(_ socket: WebSocket) { last = socket }

    func received(text: [UInt8], from socket: WebSocket) {
        beforeText?(String(decoding: text, as: UTF8.self))
        switch String(decoding: text, as: UTF8.self) {
        case "close me": socket.close(code: 4001)
        case "now": socket.sendNow(.text(text))
        default: socket.send(text: text)
        }
    }

    func received(binary: [UInt8], from socket: WebSocket) { socket.send(binary: binary) }
    func closed(_ socket: WebSocket, code: UInt16, reason: String) { closed += 1 }
}
