/// A server for HTTP/1.1 and WebSockets on one loop. It lives while it listens or has connections.
///
/// Several servers on several loops may share a port: one of them listens and passes accepted sockets to the others.
public final class HTTPServer {
    /// The limits and deadlines of a server.
    public struct Settings: Hashable, Sendable {
        /// The limits on one message.
        public var limits = HTTPLimits()
        /// The time from the first byte of a request to the end of its head. For the first request it starts with the
        /// connection.
        public var headDeadline = Duration.seconds(10)
        /// The time from the end of a head to the end of the body.
        public var bodyDeadline = Duration.seconds(30)
        /// The time between two requests, and between two checks that a client reads its response.
        public var idleDeadline = Duration.seconds(60)
        /// The time from a WebSocket's close frame to the peer's answer.
        public var closeDeadline = Duration.seconds(5)
        /// The time in which a connection beyond the limit has to send its health check.
        public var reserveDeadline = Duration.seconds(2)
        /// True if WebSocket messages are packed for clients that offer permessage-deflate.
        public var deflates = true
        /// The certificate and the key for TLS; nil: the server does not use TLS.
        public var tls: TLSServer?
        /// The proxies that the server trusts to name the client of a connection or a request.
        public var trustedProxies = AddressRanges()
        /// The number of connections that the kernel keeps until they are accepted. A further connection waits on the
        /// client's side.
        public var acceptQueue = 4_096
        /// Header fields of every response, except the response to a WebSocket handshake.
        public var fields = HTTPHeaders()

        /// Creates the default settings of a node.
        public init() {}
    }

    /// The counters of a server since its start.
    public struct Counters: Hashable, Sendable {
        /// The number of accepted connections.
        public var accepted = 0
        /// The number of open connections, WebSockets included.
        public var open = 0
        /// The number of open WebSockets.
        public var webSockets = 0
        /// The number of requests that were read completely.
        public var requests = 0
        /// The number of requests and connections that were refused before they reached a route.
        public var refused = 0
    }

    /// The loop that the server belongs to.
    public let loop: EventLoop
    /// The settings of the server.
    public let settings: Settings
    /// The counters since the start.
    public internal(set) var counters = Counters()
    /// True once the server takes no more connections and closes those that are done.
    public private(set) var isDraining = false

    let handler: any HTTPHandler
    private var listener: TCPListener?
    let gate: ConnectionGate
    private(set) var connections: [ObjectIdentifier: HTTPServerConnection] = [:]
    /// The connections beyond the limit, the oldest first. Each may send one health check.
    private var reserve: [(connection: HTTPServerConnection, since: ContinuousClock.Instant)] = []
    private var drained: (() -> Void)?

    /// Creates a server that does not listen yet. All its methods are called on the loop too.
    ///
    /// - Parameters:
    ///   - loop: The loop of the server and its connections.
    ///   - settings: The limits and deadlines.
    ///   - gate: The connection limits; a connection that the gate refuses gets the response 503.
    ///   - handler: The owner, which answers the requests.
    public init(
        on loop: EventLoop,
        _ settings: Settings = Settings(),
        gate: ConnectionGate = ConnectionGate(limit: 10_000),
        handler: any HTTPHandler
    ) {
        loop.checkIsolated()
        self.gate = gate
        self.loop = loop
        self.settings = settings
        self.handler = handler
    }

    /// Listens on an address. On the loop.
    ///
    /// - Parameters:
    ///   - address: The address; port 0 stands for any free port.
    ///   - accepted: Called with each accepted socket; by default this server serves it.
    /// - Returns: The address with the real port.
    /// - Throws: `addressInUse`, `permissionDenied`, `badAddress` or `tooManyFiles`.
    @discardableResult
    public func listen(
        on address: SocketAddress,
        accepted: ((AcceptedSocket) -> Void)? = nil
    ) throws(NetError) -> SocketAddress {
        let listener = try TCPListener(
            on: loop,
            address: address,
            backlog: Int32(clamping: settings.acceptQueue)
        ) { [gate] in
            gate.lackedDescriptor()
        } accepted: { [self] socket in
            if let accepted { accepted(socket) } else { accept(socket) }
        }
        self.listener = listener
        return listener.address
    }

    /// Serves an accepted socket. On the loop.
    public func accept(_ socket: AcceptedSocket) {
        guard let tcp = try? TCPConnection(loop: loop, descriptor: socket.descriptor) else { return }
        counters.accepted += 1
        if isDraining { return refuse(tcp, "the server ends") }
        // A connection that was reset before it was accepted has no peer address.
        guard let peer = tcp.peer else { return tcp.close() }
        let isProxy = settings.trustedProxies.contains(peer)
        if isProxy { tcp.greeting = ProxyGreeting() }
        var origin: UInt64 = 0
        if !isProxy, gate.counts(peer) { origin = peer.origin }
        if let refusal = gate.enter(origin) { return admitToReserve(tcp, gate.says(refusal)) }
        guard secure(tcp) else {
            gate.leave(origin)
            return tcp.close()
        }
        counters.open += 1
        let connection = HTTPServerConnection(self, tcp, origin: origin)
        connections[ObjectIdentifier(connection)] = connection
        tcp.greeting?.named = { [gate, unowned connection] client in
            guard gate.counts(client) else { return }
            if let refusal = gate.name(client.origin) {
                connection.refuse(HTTPViolation(503, gate.says(refusal)))
            } else {
                connection.origin = client.origin
            }
        }
    }

    private static let reserveMax = 16
    /// The minimum time for which a TLS connection stays in the reserve, since a handshake costs more than a refusal.
    private static let reserveTLS = Duration.milliseconds(100)

    /// Takes a connection beyond the limit for one health check. Without this, a client that opens all connections
    /// makes the server look dead, and a proxy then closes the connections that the server still serves.
    private func admitToReserve(_ tcp: TCPConnection, _ refusal: String) {
        if let oldest = reserve.first, reserve.count >= Self.reserveMax {
            guard settings.tls == nil || ContinuousClock.now - oldest.since >= Self.reserveTLS else {
                return refuse(tcp, refusal)
            }
            oldest.connection.refuse(HTTPViolation(503, refusal))
            reserve.removeAll { $0.connection === oldest.connection }
        }
        guard secure(tcp) else { return tcp.close() }
        reserve.append((HTTPServerConnection(self, tcp, beyondLimit: refusal), .now))
    }

    /// Starts TLS if the server uses it. The handshake has to be done within the deadline of the first head.
    private func secure(_ tcp: TCPConnection) -> Bool {
        guard let server = settings.tls else { return true }
        guard let session = try? TLSSession(server) else { return false }
        tcp.secure(session)
        return true
    }

    private func refuse(_ tcp: TCPConnection, _ detail: String) {
        counters.refused += 1
        // A handshake would cost more than the refusal is worth.
        guard settings.tls == nil else { return tcp.close() }
        var response = handler.refusal(of: HTTPViolation(503, detail))
        response.headers.add("content-length", String(response.body.count))
        response.headers.add("connection", "close")
        tcp.write(HTTPEncoder.head(response.status, response.headers) + response.body)
        tcp.finish()
    }

    /// Stops listening, lets active requests finish, and ends idle connections. Calls `drained` once nothing is left.
    /// The owners of WebSockets close these. On the loop.
    public func drain(then drained: @escaping () -> Void) {
        isDraining = true
        self.drained = drained
        stopListening()
        for connection in Array(connections.values) + reserve.map(\.connection) { connection.drain() }
        checkDrained()
    }

    /// Stops listening and closes every connection that is not a WebSocket, at once. On the loop.
    public func close() {
        isDraining = true
        stopListening()
        for connection in Array(connections.values) + reserve.map(\.connection) { connection.close() }
    }

    private func stopListening() {
        listener?.close()
        listener = nil
    }

    // MARK: What connections tell

    func upgraded(_ connection: HTTPServerConnection) {
        remove(connection)
        counters.webSockets += 1
    }

    func webSocketEnded(of origin: UInt64) {
        counters.webSockets -= 1
        counters.open -= 1
        gate.leave(origin)
        checkDrained()
    }

    func ended(_ connection: HTTPServerConnection) {
        if connection.isReserve { return reserve.removeAll { $0.connection === connection } }
        remove(connection)
        counters.open -= 1
        gate.leave(connection.origin)
        checkDrained()
    }

    private func remove(_ connection: HTTPServerConnection) {
        connections[ObjectIdentifier(connection)] = nil
        // An empty table would keep the memory of a burst of connections.
        if connections.isEmpty, connections.capacity > 64 { connections = [:] }
    }

    private func checkDrained() {
        guard isDraining, counters.open == 0, let drained else { return }
        self.drained = nil
        drained()
    }
}

@available(*, unavailable)
extension HTTPServer: Sendable {}
