import CFanOutFloor
import Glibc
import ReelNet

/// One publisher, many subscribers, small messages: how many deliveries a second ReelNet makes on one loop, next to
/// a bare epoll server in C that is measured by the same reader in the same run.
func benchmarkFanOut(sockets: Int32 = 1000, payload: Int32 = 200, seconds: Double = 0.5) throws {
    raiseDescriptorLimit()
    let loop = try EventLoop()
    let port = try loop.sync {
        let server = HTTPServer(on: loop, handler: FanOutServer())
        return try server.listen(on: SocketAddress("127.0.0.1", port: 0)).port
    }
    let floor = floor_serve()
    guard floor > 0 else { throw NetError(.other, "the bare server does not start") }
    print("fan-out 1 -> \(sockets), \(payload) B, one loop, deliveries/s, medians of 3")
    print("  messages a write     ReelNet  bare C epoll  ratio")
    for window: Int32 in [2, 16, 64] {
        var rates: (own: [Double], floor: [Double]) = ([], [])
        for _ in 0..<3 {
            rates.own.append(try rate(Int32(port), sockets, payload, window, seconds))
            rates.floor.append(try rate(floor, sockets, payload, window, seconds))
        }
        let (own, bare) = (median(rates.own), median(rates.floor))
        let columns = [("\(window / 2)", 18), ("\(Int(own))", 12), ("\(Int(bare))", 14)]
        let ratio = Double(Int(own / bare * 100)) / 100
        print(columns.map { String(repeating: " ", count: max(0, $1 - $0.count)) + $0 }.joined() + "   \(ratio)")
    }
    loop.stop()
    loop.join()
}

private func rate(
    _ port: Int32,
    _ sockets: Int32,
    _ payload: Int32,
    _ window: Int32,
    _ seconds: Double
) throws -> Double {
    var result = floor_result()
    guard floor_drive(port, sockets, payload, window, seconds, &result) == 0 else {
        throw NetError(.other, "the reader met a server that does not behave: errno \(errno)")
    }
    return Double(result.deliveries) / result.seconds
}

private func raiseDescriptorLimit() {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}

/// What `/pub` says goes to everyone at `/sub`: the messages of a round in one shared buffer, one write a socket.
private final class FanOutServer: HTTPHandler, WebSocketHandler {
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
            socket.loop.atRoundEnd { [self] in
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
