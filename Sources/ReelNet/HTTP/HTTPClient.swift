/// A request of a client, with the address of its server.
public struct HTTPClientRequest: Hashable, Sendable {
    /// The method: `GET`, `POST`, …
    public var method: String
    /// The server's name or address.
    public var host: String
    /// The server's port.
    public var port: UInt16
    /// The trust settings for TLS (https); nil for a connection without TLS.
    public var tls: TLSClient?
    /// The path and the query, percent-encoded.
    public var target: String
    /// The header fields. The host and the length are added when the request is sent.
    public var headers = HTTPHeaders()
    /// The body.
    public var body: [UInt8] = []
    /// The time limit for connecting, and then for the server's silence.
    public var timeout = Duration.seconds(30)

    /// Creates a request with the default timeout.
    ///
    /// - Parameters:
    ///   - method: `GET`, `POST`, …
    ///   - host: The server's name or address.
    ///   - port: The server's port.
    ///   - target: The path and the query, percent-encoded.
    ///   - body: The body.
    public init(_ method: String, host: String, port: UInt16, target: String, body: [UInt8] = []) {
        self.method = method
        self.host = host
        self.port = port
        self.target = target
        self.body = body
    }

    var authority: String { host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// The key of a connection: requests with the same origin may share one.
    var origin: Origin { Origin(authority: authority, tls: tls) }

    struct Origin: Hashable {
        let authority: String
        let tls: TLSClient?
    }

    var bytes: [UInt8] {
        var fields: HTTPHeaders = ["host": authority]
        if !body.isEmpty || method != "GET" && method != "HEAD" { fields.add("content-length", String(body.count)) }
        for field in headers.fields { fields.add(field.name, field.value) }
        return HTTPEncoder.message("\(method) \(target) HTTP/1.1", fields) + body
    }
}

/// An HTTP client on one loop. It keeps a few idle connections for later requests.
public final class HTTPClient {
    /// An event of a request: `head`, any number of `data`, then `end`; or `failed` at any time.
    public enum Event: Sendable {
        /// The status and the header fields have arrived.
        case head(HTTPResponseHead)
        /// A piece of the body has arrived.
        case data([UInt8])
        /// The response is complete.
        case end
        /// The request has failed: there is no response, or its rest is missing.
        case failed(NetError)
    }

    /// The loop that the client belongs to.
    public let loop: EventLoop
    private let maxIdle: Int
    private let idleDeadline: Duration
    private var idle: [IdleConnection] = []

    /// Creates a client. All its methods are called on the loop too.
    ///
    /// - Parameters:
    ///   - loop: The loop of the client and its connections.
    ///   - maxIdle: The maximum number of idle connections that are kept.
    ///   - idleDeadline: The time for which an idle connection is kept. It is shorter than the idle time of servers.
    public init(on loop: EventLoop, maxIdle: Int = 4, idleDeadline: Duration = .seconds(20)) {
        loop.checkIsolated()
        self.loop = loop
        self.maxIdle = maxIdle
        self.idleDeadline = idleDeadline
    }

    /// Sends a request, and passes the events of the response to `receive` as they arrive. On the loop.
    ///
    /// - Returns: The request under way, to cancel or pause it.
    @discardableResult
    public func send(_ request: HTTPClientRequest, _ receive: @escaping (Event) -> Void) -> HTTPCall {
        let call = HTTPCall(self, request, receive)
        if let tcp = takeIdle(request.origin) { call.begin(on: tcp, isReused: true) } else { call.connect() }
        return call
    }

    /// Sends a request, and passes on the whole response. On the loop.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - maxBody: The maximum size of the response's body in bytes; a larger one fails with `violation`.
    ///   - then: Called once, on the loop.
    /// - Returns: The request under way, to cancel it.
    @discardableResult
    public func fetch(
        _ request: HTTPClientRequest,
        maxBody: Int = 64 << 20,
        then: @escaping (Result<HTTPResponse, NetError>) -> Void
    ) -> HTTPCall {
        var response = HTTPResponse(status: 0)
        var then: ((Result<HTTPResponse, NetError>) -> Void)? = then
        var call: HTTPCall?
        func finish(_ result: Result<HTTPResponse, NetError>) {
            let last = then
            then = nil
            call = nil
            last?(result)
        }
        let started = send(request) { event in
            switch event {
            case .head(let head):
                response.status = head.status
                response.headers = head.headers
            case .data(let bytes):
                if response.body.count + bytes.count <= maxBody {
                    response.body += bytes
                } else {
                    let call = call
                    finish(.failure(NetError(.violation, "an answer of more than \(maxBody) bytes")))
                    call?.cancel()
                }
            case .end: finish(.success(response))
            case .failed(let error): finish(.failure(error))
            }
        }
        if then != nil { call = started }
        return started
    }

    /// Closes the idle connections. On the loop.
    public func close() {
        for connection in idle { connection.tcp.close() }
    }

    // MARK: Kept connections

    private func takeIdle(_ origin: HTTPClientRequest.Origin) -> TCPConnection? {
        guard let index = idle.lastIndex(where: { $0.origin == origin }) else { return nil }
        return idle.remove(at: index).tcp
    }

    func keep(_ tcp: TCPConnection, _ origin: HTTPClientRequest.Origin) {
        if idle.count >= maxIdle, let oldest = idle.first { oldest.tcp.close() }
        guard idle.count < maxIdle else { return tcp.close() }
        idle.append(IdleConnection(self, tcp, origin, idleDeadline))
    }

    fileprivate func lost(_ connection: IdleConnection) {
        idle.removeAll { $0 === connection }
    }
}

@available(*, unavailable)
extension HTTPClient: Sendable {}

extension LoopBound where Value == HTTPClient {
    /// Sends a request and waits for the whole response. From any thread.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - maxBody: The maximum size of the response's body in bytes; a larger one fails with `violation`.
    /// - Throws: The `NetError` of the request, or `closed` if the loop has stopped.
    public func fetch(_ request: HTTPClientRequest, maxBody: Int = 64 << 20) async throws -> HTTPResponse {
        try await withCheckedThrowingContinuation { continuation in
            let isTaken = loop.execute {
                value.fetch(request, maxBody: maxBody) { continuation.resume(with: $0) }
            }
            if !isTaken { continuation.resume(throwing: NetError(.closed, "the event loop has stopped")) }
        }
    }
}

/// A connection that waits for the next request. Any event on it makes it unusable, so it is closed.
private final class IdleConnection: TCPHandler {
    let tcp: TCPConnection
    let origin: HTTPClientRequest.Origin
    private weak var client: HTTPClient?

    init(_ client: HTTPClient, _ tcp: TCPConnection, _ origin: HTTPClientRequest.Origin, _ deadline: Duration) {
        self.client = client
        self.tcp = tcp
        self.origin = origin
        tcp.handler = self
        tcp.setDeadline(deadline)
    }

    func received(_ bytes: Span<UInt8>) { tcp.close() }
    func ended() { tcp.close() }
    func drained() {}
    func deadlinePassed() { tcp.close() }
    func closed(_ error: NetError?) { client?.lost(self) }
}
