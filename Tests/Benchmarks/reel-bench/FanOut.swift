import CFanOutFloor
import Glibc
import ReelNet

/// Measures the deliveries per second of ReelNet on one loop, with one publisher, 1,000 subscribers and small messages.
/// The floor is a bare epoll server in C. The same reader measures both in the same run.
enum FanOutBenchmark {
    private static let seconds = 0.5

    @Sendable static func run() throws -> [Measured] {
        raiseDescriptorLimit()
        let loop = try EventLoop()
        let port = try loop.sync {
            let server = HTTPServer(on: loop, handler: FanOutServer())
            return try server.listen(on: SocketAddress("127.0.0.1", port: 0)).port
        }
        let floor = floor_serve()
        guard floor > 0 else { throw BenchmarkError("the bare server does not start") }
        var lines: [Measured] = []
        for window: Int32 in [2, 16, 64] {
            var rates: (own: [Double], floor: [Double]) = ([], [])
            for _ in 0..<5 {
                rates.own.append(try FanOut(floor_bare, port: Int32(port), window: window, seconds: seconds).perSecond)
                rates.floor.append(try FanOut(floor_bare, port: floor, window: window, seconds: seconds).perSecond)
            }
            lines.append(
                Measured(
                    work: "WebSocket fan-out 1 → 1000, 200 B, \(window / 2) messages a write, one loop",
                    value: median(rates.own),
                    unit: "deliveries/s",
                    peer: ("bare C epoll", median(rates.floor)),
                    goal: nil
                )
            )
        }
        loop.stop()
        loop.join()
        return lines
    }
}

/// Raises the limit on open descriptors of this process to its maximum.
func raiseDescriptorLimit() {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}

/// A server that sends all messages to `/pub` to all subscribers at `/sub`. The messages of a round of the loop share
/// one buffer, which is one write for each socket.
final class FanOutServer: HTTPHandler, WebSocketHandler {
    private var subscribers: [ObjectIdentifier: WebSocket] = [:]
    private var batch: WebSocketFrame?

    func respond(to request: HTTPRequest, _ exchange: HTTPExchange) {
        exchange.respond(HTTPResponse(status: 404))
    }

    func refusal(of violation: HTTPViolation) -> HTTPResponse { HTTPResponse(status: violation.status) }

    func upgrade(_ offer: WebSocketOffer) -> WebSocketDecision {
        let handler: any WebSocketHandler = offer.head.path == "/sub" ? Subscriber(self) : self
        return .accept(subprotocol: nil, maxMessage: 1 << 20, handler: handler)
    }

    func received(text: [UInt8], from socket: WebSocket) {
        let frame = WebSocketFrame.text(text)
        if batch == nil {
            batch = frame
            socket.loop.beforeFlush { [self] in
                if let batch { for subscriber in subscribers.values { subscriber.send(batch) } }
                batch = nil
            }
        } else {
            batch?.append(frame)
        }
    }

    func closed(_ socket: WebSocket, code: UInt16, reason: String) {}

    fileprivate func joined(_ socket: WebSocket) { subscribers[ObjectIdentifier(socket)] = socket }
    fileprivate func left(_ socket: WebSocket) { subscribers[ObjectIdentifier(socket)] = nil }
}

private final class Subscriber: WebSocketHandler {
    private let server: FanOutServer

    init(_ server: FanOutServer) { self.server = server }

    func opened(_ socket: WebSocket) { server.joined(socket) }
    func received(text: [UInt8], from socket: WebSocket) {}
    func closed(_ socket: WebSocket, code: UInt16, reason: String) { server.left(socket) }
}
