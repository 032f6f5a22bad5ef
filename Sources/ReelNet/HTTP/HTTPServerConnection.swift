/// A connection of a server: it drives the decoder, delivers requests one at a time, and keeps the deadlines.
final class HTTPServerConnection: TCPHandler {
    let loop: EventLoop
    /// True if the connection ends after the current response.
    var closesAfterAnswer = false

    /// The origin under which the gate counts the connection; 0: the gate does not count it.
    var origin: UInt64
    private let server: HTTPServer
    private let tcp: TCPConnection
    private var decoder: HTTPRequestDecoder
    private var head: HTTPRequestHead?
    private var exchange: HTTPExchange?
    /// The bytes that have arrived after the request that is being answered.
    private var held: [UInt8] = []
    private var isDecoding = false
    private var hasServed = false
    /// The detail of the 503 for anything but a health check, if the connection is beyond the limit; nil: it is not.
    private let beyondLimit: String?
    /// The remote address, or the client that a trusted proxy has named for the whole connection. The kernel is asked
    /// once.
    private lazy var peer = tcp.peer

    private static let maxHeld = 64 << 10
    /// The number of bytes that the client has not read above which its next request waits.
    private static let maxPending = 256 << 10

    /// The size of a body in bytes above which the handler is asked by the head first.
    private static let bodyUnasked = 16 << 10

    init(_ server: HTTPServer, _ tcp: TCPConnection, origin: UInt64 = 0, beyondLimit: String? = nil) {
        self.server = server
        self.origin = origin
        self.beyondLimit = beyondLimit
        closesAfterAnswer = beyondLimit != nil
        self.tcp = tcp
        loop = tcp.loop
        decoder = HTTPRequestDecoder(server.settings.limits)
        tcp.handler = self
        let deadline = server.settings.headDeadline
        tcp.setDeadline(beyondLimit == nil ? deadline : min(deadline, server.settings.reserveDeadline))
        tcp.resumeReading()
    }

    /// True if the connection is beyond the server's limit.
    var isReserve: Bool { beyondLimit != nil }

    /// True if a request is being read or answered.
    var isBusy: Bool { exchange != nil || !decoder.isBetweenRequests || !held.isEmpty }

    // MARK: Reading

    func received(_ bytes: Span<UInt8>) {
        if mayReadNext, held.isEmpty {
            let used = decode(bytes)
            bytes.extracting(used..<bytes.count).withUnsafeBufferPointer { held.append(contentsOf: $0) }
        } else {
            bytes.withUnsafeBufferPointer { held.append(contentsOf: $0) }
        }
        if held.count > Self.maxHeld { tcp.pauseReading() }
    }

    /// Decodes until a request has to be answered first; returns the number of bytes used.
    private func decode(_ bytes: Span<UInt8>) -> Int {
        isDecoding = true
        defer { isDecoding = false }
        var position = 0
        while mayReadNext {
            let wasBetween = decoder.isBetweenRequests
            do throws(HTTPViolation) {
                let event = try decoder.next(bytes, &position)
                if wasBetween, !decoder.isBetweenRequests, event == nil, hasServed {
                    tcp.setDeadline(server.settings.headDeadline)
                }
                guard let event else {
                    try checkMemory()
                    break
                }
                try handle(event, bytes.extracting(position..<bytes.count))
            } catch {
                refuse(error)
            }
        }
        return tcp.handler === self ? position : bytes.count
    }

    /// Throws 503 for a body that was begun before memory became short, so that it does not grow further.
    private func checkMemory() throws(HTTPViolation) {
        if server.gate.lacksMemory(for: decoder.heldBytes) { throw HTTPViolation(503, server.gate.says(.memory)) }
    }

    private func handle(_ event: HTTPRequestDecoder.Event, _ rest: Span<UInt8>) throws(HTTPViolation) {
        switch event {
        case .head(var head, let expectsContinue):
            head.client = client(of: head)
            if let beyondLimit, !server.handler.isHealthCheck(head) { throw HTTPViolation(503, beyondLimit) }
            if expectsContinue || head.announcesMore(than: Self.bodyUnasked),
                let response = server.handler.refusal(of: head)
            {
                return refuse(with: response)
            }
            self.head = head
            if expectsContinue { tcp.write(HTTPEncoder.head(100, [:])) }
            tcp.setDeadline(server.settings.bodyDeadline)
        case .body(let body):
            guard let head else { return }
            self.head = nil
            server.counters.requests += 1
            if let offer = try WebSocketHandshake.offer(in: head, hasBody: !body.isEmpty) {
                return upgrade(offer, rest)
            }
            answer(HTTPRequest(head: head, body: body))
        }
    }

    /// True if the next request may be read.
    private var mayReadNext: Bool {
        exchange == nil && tcp.pendingBytes <= Self.maxPending && !tcp.isClosed && tcp.handler === self
    }

    private func answer(_ request: HTTPRequest) {
        let exchange = HTTPExchange(self, request.head)
        self.exchange = exchange
        closesAfterAnswer = closesAfterAnswer || !request.head.keepsAlive
        tcp.setDeadline(server.settings.idleDeadline)
        server.handler.respond(to: request, exchange)
    }

    private func upgrade(_ offer: WebSocketOffer, _ rest: Span<UInt8>) {
        if server.isDraining { return refuse(HTTPViolation(503, "the server is about to end")) }
        switch server.handler.upgrade(offer) {
        case .refuse(let response):
            let exchange = HTTPExchange(self, offer.head)
            self.exchange = exchange
            closesAfterAnswer = closesAfterAnswer || !offer.head.keepsAlive
            exchange.respond(response)
        case .accept(let subprotocol, let maxMessage, let handler):
            let deflate = server.settings.deflates ? offer.deflate : nil
            tcp.write(WebSocketHandshake.acceptance(of: offer, subprotocol, deflate: deflate))
            server.upgraded(self)
            let socket = WebSocket(
                tcp,
                .server(server, origin: origin),
                maxMessage: maxMessage,
                deflates: deflate != nil,
                handler: handler
            )
            if let client = offer.client, client != peer { socket.forwarded = client }
            socket.open(rest)
        }
    }

    func refuse(_ violation: HTTPViolation) {
        var response = server.handler.refusal(of: violation)
        if violation.status == 426 {
            response.headers.add("upgrade", "websocket")
            response.headers.add("connection", "upgrade")
            response.headers.add("sec-websocket-version", "13")
        }
        refuse(with: response)
    }

    /// Sends the last response of the connection and closes it.
    private func refuse(with response: HTTPResponse) {
        server.counters.refused += 1
        var response = response
        response.headers.add("content-length", String(response.body.count))
        closesAfterAnswer = true
        tcp.write(head(response.status, response.headers) + response.body)
        finish()
    }

    /// Ends the connection. The written bytes go out first, while the client reads them.
    private func finish() {
        guard !tcp.isClosed else { return }
        tcp.setDeadline(server.settings.idleDeadline)
        tcp.finish()
    }

    // MARK: Answering

    var pendingBytes: Int { tcp.pendingBytes }

    /// Returns the address of the client that sent a request. It comes from trusted proxies if they name it.
    private func client(of head: HTTPRequestHead) -> SocketAddress? {
        let proxies = server.settings.trustedProxies
        guard let peer, proxies.contains(peer) else { return peer }
        return ForwardedHeader.client(in: head.headers, trusting: proxies) ?? peer
    }

    func head(_ status: Int, _ headers: HTTPHeaders) -> [UInt8] {
        var headers = headers
        for field in server.settings.fields.fields { headers.add(field.name, field.value) }
        headers.add("date", loop.date.now())
        if server.isDraining { closesAfterAnswer = true }
        if closesAfterAnswer { headers.add("connection", "close") }
        return HTTPEncoder.head(status, headers)
    }

    func write(_ bytes: [UInt8]) {
        tcp.write(bytes)
    }

    func abort() {
        tcp.close()
    }

    func exchangeEnded() {
        exchange = nil
        hasServed = true
        if closesAfterAnswer { return finish() }
        tcp.setDeadline(server.settings.idleDeadline)
        if !isDecoding { decodeHeld() }
    }

    private func decodeHeld() {
        while !held.isEmpty, mayReadNext {
            let bytes = held
            held = []
            let used = decode(bytes.span)
            held = Array(bytes[used...])
            if used == 0 { break }
        }
        if held.count <= Self.maxHeld, tcp.handler === self { tcp.resumeReading() }
    }

    func drained() {
        if let exchange { exchange.connectionDrained() } else { decodeHeld() }
    }

    // MARK: Ends

    func ended() {
        if exchange != nil { closesAfterAnswer = true } else { finish() }
    }

    func spokeWithoutTLS() {
        refuse(HTTPViolation(400, "plain HTTP was spoken where TLS is: https:// in place of http://"))
    }

    func deadlinePassed() {
        if exchange != nil || tcp.pendingBytes > 0 {
            // A response may take its time to begin; one that the client does not read is not kept.
            guard tcp.checkReadingPace() != .tooSlow else {
                server.gate.metSlow()
                return tcp.reset()
            }
            tcp.setDeadline(server.settings.idleDeadline)
        } else if let beyondLimit {
            refuse(HTTPViolation(503, beyondLimit))
        } else if decoder.isBetweenRequests {
            tcp.finish()
        } else {
            refuse(HTTPViolation(408, head == nil ? "the head took too long" : "the body took too long"))
        }
    }

    /// Called when the server drains: an idle connection ends now, a busy one after its response.
    func drain() {
        if isBusy { closesAfterAnswer = true } else { finish() }
    }

    func close() {
        tcp.close()
    }

    func closed(_ error: NetError?) {
        let exchange = exchange
        self.exchange = nil
        if let error, error.code == .tls { server.counters.refused += 1 }
        server.ended(self)
        exchange?.connectionBroke()
    }
}

extension HTTPRequestHead {
    /// True if the head announces a body of more than `count` bytes, or of unknown length.
    fileprivate func announcesMore(than count: Int) -> Bool {
        if headers["transfer-encoding"] != nil { return true }
        return headers["content-length"].flatMap { Int($0) } ?? 0 > count
    }
}
