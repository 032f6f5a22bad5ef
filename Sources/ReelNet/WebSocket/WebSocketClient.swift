/// The address of a WebSocket, with the settings of the connection.
public struct WebSocketTarget: Hashable, Sendable {
    /// The server's name or address.
    public var host: String
    /// The server's port.
    public var port: UInt16
    /// The trust settings for TLS (wss); nil for a connection without TLS.
    public var tls: TLSClient?
    /// The path and the query.
    public var path: String
    /// The subprotocols to offer, in order of preference.
    public var subprotocols: [String]
    /// Header fields that are sent besides those of the handshake.
    public var headers = HTTPHeaders()
    /// The time limit from the call to the end of the handshake.
    public var timeout = Duration.seconds(10)
    /// The time limit from this side's close frame to the server's answer.
    public var closeDeadline = Duration.seconds(5)
    /// The largest accepted message from the server in bytes.
    public var maxMessage = 16 << 20

    /// Creates a target with the default timeout and message limit.
    ///
    /// - Parameters:
    ///   - host: The server's name or address.
    ///   - port: The server's port.
    ///   - path: The path and the query.
    ///   - subprotocols: The subprotocols to offer, in order of preference.
    public init(host: String, port: UInt16, path: String, subprotocols: [String] = []) {
        self.host = host
        self.port = port
        self.path = path
        self.subprotocols = subprotocols
    }

    var authority: String { host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// An attempt to open a WebSocket: it connects, makes the handshake, and passes the socket to its owner.
public final class WebSocketClient {
    private let target: WebSocketTarget
    private let handler: any WebSocketHandler
    private let key = WebSocketHandshake.newKey()
    private var failed: ((NetError) -> Void)?
    private var connector: TCPConnector?
    private var tcp: TCPConnection?
    private var decoder = HTTPResponseDecoder()

    private init(_ target: WebSocketTarget, _ handler: any WebSocketHandler, _ failed: @escaping (NetError) -> Void) {
        self.target = target
        self.handler = handler
        self.failed = failed
    }

    /// Connects. Either `handler.opened` or `failed` is called, once. On the loop.
    ///
    /// - Parameters:
    ///   - loop: The loop of the socket.
    ///   - target: The address and the settings.
    ///   - handler: The owner of the socket.
    ///   - failed: Called with the error if the socket does not open.
    /// - Returns: The attempt, to cancel it.
    @discardableResult
    public static func connect(
        on loop: EventLoop,
        to target: WebSocketTarget,
        handler: any WebSocketHandler,
        failed: @escaping (NetError) -> Void
    ) -> WebSocketClient {
        let client = WebSocketClient(target, handler, failed)
        let deadline = loop.freshNow + target.timeout.milliseconds
        client.connector = TCPConnection.connect(
            on: loop,
            host: target.host,
            port: target.port,
            tls: target.tls,
            timeout: target.timeout
        ) { result in
            client.connector = nil
            switch result {
            case .success(let tcp):
                client.shakeHands(tcp, .milliseconds(Int64(max(1, Int64(deadline) - Int64(loop.now)))))
            case .failure(let error): client.fail(error)
            }
        }
        return client
    }

    /// Cancels the attempt if the socket is not open yet; `failed` is then called with `closed`. On the loop.
    public func cancel() {
        connector?.cancel()
        tcp?.close()
    }

    private func shakeHands(_ tcp: TCPConnection, _ timeLeft: Duration) {
        self.tcp = tcp
        tcp.handler = self
        tcp.setDeadline(timeLeft)
        tcp.write(WebSocketHandshake.request(target, key: key))
        tcp.resumeReading()
    }

    private func fail(_ error: NetError) {
        let (failed, tcp) = (failed, tcp)
        self.failed = nil
        self.tcp = nil
        tcp?.close()
        failed?(error)
    }
}

@available(*, unavailable)
extension WebSocketClient: Sendable {}

// The handler during the handshake.
extension WebSocketClient: TCPHandler {
    /// Called with bytes of the response.
    func received(_ bytes: Span<UInt8>) {
        var position = 0
        do {
            guard let event = try decoder.next(bytes, &position), case .head(let head) = event, let tcp else { return }
            let subprotocol = try WebSocketHandshake.verify(head, key: key, subprotocols: target.subprotocols)
            self.tcp = nil
            failed = nil
            let socket = WebSocket(
                tcp,
                .client(subprotocol: subprotocol, closeDeadline: target.closeDeadline),
                maxMessage: target.maxMessage,
                handler: handler
            )
            socket.open(bytes.extracting(position..<bytes.count))
        } catch let error as NetError {
            fail(error)
        } catch {
            fail(NetError(.violation, "the answer to a WebSocket's handshake: \(error)"))
        }
    }

    /// Called when the server has ended the connection.
    func ended() {
        fail(NetError(.closed, "the server ended the connection during a WebSocket's handshake"))
    }

    /// Does nothing.
    func drained() {}

    /// Called when the handshake took too long.
    func deadlinePassed() {
        fail(NetError(.timedOut, "a WebSocket's handshake took more than \(target.timeout)"))
    }

    /// Called when the connection is gone.
    func closed(_ error: NetError?) {
        tcp = nil
        fail(error ?? NetError(.closed, "a WebSocket's handshake was given up"))
    }
}
