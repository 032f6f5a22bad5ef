/// What a client asks, and of whom.
public struct HTTPClientRequest: Hashable, Sendable {
    /// `GET`, `POST`, …
    public var method: String
    /// A name or an address.
    public var host: String
    /// The port.
    public var port: UInt16
    /// Whom to believe where TLS is spoken (https); nil: it is not.
    public var tls: TLSClient?
    /// Path and query, encoded as they have to be.
    public var target: String
    /// Header fields; host and length are added when it is sent.
    public var headers = HTTPHeaders()
    /// The body.
    public var body: [UInt8] = []
    /// How long connecting may take, then how long the other side may be silent.
    public var timeout = Duration.seconds(30)

    /// A request with the default timeout.
    public init(_ method: String, host: String, port: UInt16, target: String, body: [UInt8] = []) {
        self.method = method
        self.host = host
        self.port = port
        self.target = target
        self.body = body
    }

    var authority: String { host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// Requests that agree in this may use the same connection.
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

/// Asks HTTP servers, on one loop, and keeps a few connections for the next questions.
public final class HTTPClient {
    /// What comes of a request: `head`, any number of `data`, then `end`; or at any time `failed`.
    public enum Event: Sendable {
        /// The status and the header fields.
        case head(HTTPResponseHead)
        /// A piece of the body.
        case data([UInt8])
        /// The answer is whole.
        case end
        /// There is no answer, or no rest of it.
        case failed(NetError)
    }

    /// The loop that it lives on.
    public let loop: EventLoop
    private let maxIdle: Int
    private let idleDeadline: Duration
    private var idle: [IdleConnection] = []

    /// A client that keeps so many connections open, each for so long: shorter than servers do. On the loop, as
    /// everything here.
    public init(on loop: EventLoop, maxIdle: Int = 4, idleDeadline: Duration = .seconds(20)) {
        loop.checkIsolated()
        self.loop = loop
        self.maxIdle = maxIdle
        self.idleDeadline = idleDeadline
    }

    /// Asks, and gives the answer on as it comes.
    @discardableResult
    public func send(_ request: HTTPClientRequest, _ receive: @escaping (Event) -> Void) -> HTTPCall {
        let call = HTTPCall(self, request, receive)
        if let tcp = takeIdle(request.origin) { call.begin(on: tcp, isReused: true) } else { call.connect() }
        return call
    }

    /// Asks, and gives the whole answer once it is there; `violation` if its body has more bytes than allowed.
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

    /// Closes the connections that are kept.
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
    /// Asks from anywhere, and waits for the whole answer.
    public func fetch(_ request: HTTPClientRequest, maxBody: Int = 64 << 20) async throws -> HTTPResponse {
        try await withCheckedThrowingContinuation { continuation in
            let isTaken = loop.execute {
                value.fetch(request, maxBody: maxBody) { continuation.resume(with: $0) }
            }
            if !isTaken { continuation.resume(throwing: NetError(.closed, "the event loop has stopped")) }
        }
    }
}

/// A connection that waits for the next question. Whatever happens on it, it is of no use any more.
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
