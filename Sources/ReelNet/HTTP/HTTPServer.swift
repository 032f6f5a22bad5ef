/// Serves HTTP/1.1 and WebSockets on one loop. It lives as long as it listens or has connections. Several servers on
/// several loops may share a port: one of them listens and gives accepted sockets to the others.
public final class HTTPServer {
    /// Bounds and deadlines.
    public struct Settings: Hashable, Sendable {
        /// Bounds on one message.
        public var limits = HTTPLimits()
        /// From the first byte of a request (of a connection: from its start) to the end of its head.
        public var headDeadline = Duration.seconds(10)
        /// From the end of a head to the end of the body.
        public var bodyDeadline = Duration.seconds(30)
        /// Between two requests, and between two looks at whether a reader takes what waits for it.
        public var idleDeadline = Duration.seconds(60)
        /// From a WebSocket's close frame to the peer's answer.
        public var closeDeadline = Duration.seconds(5)
        /// How long a connection beyond the limit may take to send its health check.
        public var reserveDeadline = Duration.seconds(2)
        /// Whether messages of WebSockets are packed for who offers permessage-deflate.
        public var deflates = true
        /// The certificate and key with which it speaks TLS; nil: it speaks plain.
        public var tls: TLSServer?
        /// Proxies that are believed when they say whose connection or request they pass on.
        public var trustedProxies = AddressRanges()
        /// Connections that the kernel keeps until they are accepted; one more waits for room at its own end.
        public var acceptQueue = 4_096
        /// Header fields that every answer carries, but for the answer to a WebSocket's handshake.
        public var fields = HTTPHeaders()

        /// What the contract of a node says.
        public init() {}
    }

    /// What has happened since the start.
    public struct Counters: Hashable, Sendable {
        /// Connections accepted.
        public var accepted = 0
        /// Connections open now, WebSockets included.
        public var open = 0
        /// WebSockets open now.
        public var webSockets = 0
        /// Requests read whole.
        public var requests = 0
        /// Requests and connections refused before any route saw them.
        public var refused = 0
    }

    /// The loop that it lives on.
    public let loop: EventLoop
    /// Its settings.
    public let settings: Settings
    /// What has happened so far.
    public internal(set) var counters = Counters()
    /// Whether it takes no more connections and lets go of those that are done.
    public private(set) var isDraining = false

    let handler: any HTTPHandler
    private var listener: TCPListener?
    let gate: ConnectionGate
    private(set) var connections: [ObjectIdentifier: HTTPServerConnection] = [:]
    /// Connections beyond the limit, the oldest first. Each may send one health check.
    private var reserve: [(connection: HTTPServerConnection, since: ContinuousClock.Instant)] = []
    private var drained: (() -> Void)?

    /// A server that listens nowhere yet. On the loop, as everything here. A connection that the gate does not let in
    /// is answered 503.
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

    /// Listens, and gives the address with the real port back. Each accepted socket goes to the callback; by default
    /// to this server. Throws as `TCPListener` does.
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

    /// Serves an accepted socket.
    public func accept(_ socket: AcceptedSocket) {
        guard let tcp = try? TCPConnection(loop: loop, descriptor: socket.descriptor) else { return }
        counters.accepted += 1
        if isDraining { return refuse(tcp, "the server ends") }
        // One that was reset before it was accepted has none.
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
    /// With TLS a connection keeps its place in the reserve for this time at least, since a handshake costs more than a
    /// refusal.
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

    /// The handshake has to be done within the deadline of the first head.
    private func secure(_ tcp: TCPConnection) -> Bool {
        guard let server = settings.tls else { return true }
        guard let session = try? TLSSession(server) else { return false }
        tcp.secure(session)
        return true
    }

    private func refuse(_ tcp: TCPConnection, _ detail: String) {
        counters.refused += 1
        // A handshake would cost more than all that it could be told.
        guard settings.tls == nil else { return tcp.close() }
        var response = handler.refusal(of: HTTPViolation(503, detail))
        response.headers.add("content-length", String(response.body.count))
        response.headers.add("connection", "close")
        tcp.write(HTTPEncoder.head(response.status, response.headers) + response.body)
        tcp.finish()
    }

    /// Stops listening, lets requests under way finish, ends idle connections, and calls back once nothing is left.
    /// WebSockets are their owners' to close.
    public func drain(then drained: @escaping () -> Void) {
        isDraining = true
        self.drained = drained
        stopListening()
        for connection in Array(connections.values) + reserve.map(\.connection) { connection.drain() }
        checkDrained()
    }

    /// Stops listening and closes every connection that is not a WebSocket, at once.
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
        // Of many that came at once an empty table would keep the room.
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
