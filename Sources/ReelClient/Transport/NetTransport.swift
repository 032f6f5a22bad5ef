#if canImport(ReelNet)
public import ReelCore
internal import ReelNet

/// The transport on Linux: WebSockets and HTTP on one event loop, which also executes the client.
public final class NetTransport: SyncTransport {
    /// The loop that this transport has made. It ends with the transport.
    private let ownLoop: EventLoop?
    private let loop: EventLoop
    private let http: LoopBound<HTTPClient>
    private let trust: Result<TLSClient, NetError>

    /// Creates a transport with its own event loop, which is one thread. Several clients may share it.
    ///
    /// - Parameter authorities: the path of a PEM file with the authorities that are trusted for nodes at `https`; nil:
    ///   the authorities of the system.
    /// - Throws: A `ReelError` with the code `bad_address` if the file cannot be read or contains no certificate.
    ///   Another error if the process has no thread or file descriptor left.
    public init(authorities: String? = nil) throws {
        trust = Result { () throws(NetError) in try TLSClient(authorities: authorities) }
        if let authorities, case .failure(let error) = trust {
            let expected = "expected the path of a PEM file with certificates"
            throw ReelError(
                .badAddress,
                "found the authorities \(authorities.debugDescription), \(expected): \(error.message)"
            )
        }
        let loop = try EventLoop()
        self.loop = loop
        ownLoop = loop
        http = try loop.sync { LoopBound(HTTPClient(on: loop), on: loop) }
    }

    deinit {
        ownLoop?.stop()
        ownLoop?.leave()
    }

    /// The event loop.
    public var executor: any SerialExecutor { loop }

    /// The loop's clock in milliseconds, as of the start of its round.
    public var nowMs: Int64 { Int64(clamping: loop.now) }

    /// Throws `bad_address` for anything but `http://HOST:PORT` and `https://HOST:PORT`. The default ports are 80 and
    /// 443.
    public func check(_ node: String) throws(ReelError) {
        if let origin = HTTPOrigin(node), origin.port > 0 { return }
        throw ReelError(.badAddress, Self.mismatch(node))
    }

    private static func mismatch(_ node: String) -> String {
        "found the node \(node.debugDescription), expected http://HOST:PORT or https://HOST:PORT without a path,"
            + " and a port from 1 to 65535"
    }

    /// Opens a WebSocket to a node. The attempt fails after ten seconds.
    public func connect(
        to node: String,
        _ receive: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportConnection {
        let connection = NetConnection(receive)
        let way: Way
        do throws(NetError) {
            way = try self.way(to: node)
        } catch {
            loop.execute { connection.failed(error.message) }
            return connection
        }
        var target = WebSocketTarget(
            host: way.origin.host,
            port: way.origin.port,
            path: "/v1/socket",
            subprotocols: ["reel.v1"]
        )
        target.tls = way.tls
        connection.attempt = WebSocketClient.connect(on: loop, to: target, handler: connection) {
            connection.failed($0.description)
        }
        return connection
    }

    /// Sends a GET request to a node. Connections are kept for the next request.
    ///
    /// - Parameters:
    ///   - node: the address of the node.
    ///   - target: the path and the query.
    ///   - token: the token of the client; nil: none.
    ///   - receive: called on the executor with the pieces of the answer.
    /// - Returns: The handle that cancels the request.
    public func get(
        from node: String,
        _ target: String,
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        send("GET", to: node, target, token: token, receive)
    }

    /// Sends a POST request with a body of JSON to a node. Connections are kept for the next request.
    ///
    /// - Parameters:
    ///   - node: the address of the node.
    ///   - target: the path and the query.
    ///   - body: the body.
    ///   - token: the token of the client; nil: none.
    ///   - receive: called on the executor with the pieces of the answer.
    /// - Returns: The handle that cancels the request.
    public func post(
        to node: String,
        _ target: String,
        json body: [UInt8],
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        send("POST", to: node, target, json: body, token: token, receive)
    }

    private func send(
        _ method: String,
        to node: String,
        _ target: String,
        json body: [UInt8]? = nil,
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        let request = NetRequest()
        let way: Way
        do throws(NetError) {
            way = try self.way(to: node)
        } catch {
            loop.execute { receive(.failed(error.message)) }
            return request
        }
        var question = HTTPClientRequest(method, host: way.origin.host, port: way.origin.port, target: target)
        question.tls = way.tls
        if let body {
            question.body = body
            question.headers.add("content-type", "application/json")
        }
        if let token { question.headers.add("authorization", "Bearer \(token)") }
        request.call = http.value.send(question) { event in
            guard !request.isCancelled else { return }
            switch event {
            case .head(let head):
                let length = head.headers["content-length"].flatMap { Int64($0) }
                receive(.head(status: head.status, length: length))
            case .data(let bytes): receive(.body(bytes))
            case .end: receive(.end)
            case .failed(let error): receive(.failed(error.description))
            }
        }
        return request
    }

    /// Calls the body once, after `ms` milliseconds. After a pause of the process, everything that has arrived
    /// meanwhile is handed over first. So a deadline that passed during the pause does not hide an answer.
    public func after(_ ms: Int64, _ body: @escaping @Sendable () -> Void) -> any TransportHandle {
        let request = NetRequest()
        request.timer = loop.timer(after: .milliseconds(ms)) { [loop] in
            // The round that runs this has polled all sockets, and its end comes after their input was handled.
            loop.execute { loop.beforeFlush { if !request.isCancelled { body() } } }
        }
        return request
    }

    /// Calls the body on the loop; at once if the caller is on the loop. From any thread.
    public func execute(_ body: @escaping @Sendable () -> Void) {
        if loop.isCurrent { body() } else { loop.execute(body) }
    }

    /// Calls the body at the end of the loop's round, before written data is sent.
    public func onBatchEnd(_ body: @escaping @Sendable () -> Void) {
        loop.beforeFlush(body)
    }

    private struct Way {
        let origin: HTTPOrigin
        let tls: TLSClient?
    }

    private func way(to node: String) throws(NetError) -> Way {
        guard let origin = HTTPOrigin(node) else {
            throw NetError(.badAddress, Self.mismatch(node))
        }
        return Way(origin: origin, tls: origin.isSecure ? try trust.get() : nil)
    }
}

/// A WebSocket to a node. Used on the loop only.
private final class NetConnection: TransportConnection, WebSocketHandler, @unchecked Sendable {
    private var receive: ((TransportEvent) -> Void)?
    private var socket: WebSocket?
    var attempt: WebSocketClient?

    init(_ receive: @escaping (TransportEvent) -> Void) {
        self.receive = receive
    }

    func failed(_ reason: String) {
        attempt = nil
        end(reason)
    }

    func opened(_ socket: WebSocket) {
        attempt = nil
        guard let receive else { return socket.close() }
        self.socket = socket
        receive(.opened)
    }

    func received(text: [UInt8], from socket: WebSocket) { receive?(.text(text)) }

    func receivedPong(_ payload: [UInt8], from socket: WebSocket) {
        receive?(Int(String(decoding: payload, as: UTF8.self)).map { .pong($0) } ?? .alive)
    }

    func receivedPart(from socket: WebSocket) { receive?(.alive) }

    func closed(_ socket: WebSocket, code: UInt16, reason: String) {
        self.socket = nil
        end("closed with \(code) \(reason)")
    }

    func send(_ text: [UInt8]) { socket?.send(text: text) }

    func ping(_ number: Int) { socket?.ping(Array(String(number).utf8)) }

    func close() {
        receive = nil
        attempt?.cancel()
        attempt = nil
        socket?.close()
        socket = nil
    }

    private func end(_ reason: String) {
        let receive = receive
        self.receive = nil
        receive?(.closed(reason))
    }
}

/// A request or a timer. Used on the loop only.
private final class NetRequest: TransportHandle, @unchecked Sendable {
    var call: HTTPCall?
    var timer: LoopTimer?
    private(set) var isCancelled = false

    func cancel() {
        guard !isCancelled else { return }
        isCancelled = true
        call?.cancel()
        timer?.cancel()
        call = nil
        timer = nil
    }
}

extension SyncClient {
    /// Creates a client of these nodes with its own `NetTransport`, which is one thread.
    ///
    /// - Parameters:
    ///   - nodes: the addresses of nodes, `http://HOST:PORT` or `https://HOST:PORT` each. Without nodes the client
    ///     works offline.
    ///   - store: the place for own events and received data.
    ///   - gaps: the source from which missing seqs are requested first.
    ///   - cacheBytes: the limit of the objects that the client holds in memory, in bytes. All other objects are read
    ///     from the store when they are needed. The limit is approximate, and at least 1 MiB.
    ///   - token: the token for nodes that have keys. A token of another user than the store's is never sent to a node.
    ///   - renewToken: returns tokens. It is called for the first token if there is none, for another token before the
    ///     present one expires, and when a node refuses the token.
    /// - Throws: `bad_address` for a node or a store's path that is not valid. A code that begins with `store_` if the
    ///   store cannot be opened. The errors of `NetTransport`.
    public init(
        nodes: [String],
        store: Store,
        gaps: GapSource = .connection,
        cacheBytes: Int = 16 << 20,
        token: String? = nil,
        renewToken: TokenSource? = nil
    ) throws {
        try self.init(
            nodes: nodes,
            store: store,
            transport: try NetTransport(),
            gaps: gaps,
            cacheBytes: cacheBytes,
            token: token,
            renewToken: renewToken
        )
    }
}
#endif
