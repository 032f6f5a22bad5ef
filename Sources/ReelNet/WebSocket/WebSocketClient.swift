/// Where a client wants a WebSocket, and how.
public struct WebSocketTarget: Hashable, Sendable {
    /// A name or an address.
    public var host: String
    /// The port.
    public var port: UInt16
    /// Whom to believe where TLS is spoken (wss); nil: it is not.
    public var tls: TLSClient?
    /// Path and query.
    public var path: String
    /// The subprotocols to offer, the best first.
    public var subprotocols: [String]
    /// Header fields besides those of the handshake.
    public var headers = HTTPHeaders()
    /// From the call to the end of the handshake.
    public var timeout = Duration.seconds(10)
    /// From this side's close frame to the server's answer.
    public var closeDeadline = Duration.seconds(5)
    /// A message from the server may have so many bytes.
    public var maxMessage = 16 << 20

    /// A target with the default timeout and bound.
    public init(host: String, port: UInt16, path: String, subprotocols: [String] = []) {
        self.host = host
        self.port = port
        self.path = path
        self.subprotocols = subprotocols
    }

    var authority: String { host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// One attempt at a WebSocket: connect, shake hands, hand over.
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

    /// Connects. Either `handler.opened` comes, or `failed` does, once. On the loop.
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

    /// Gives up, if it is not open yet; `failed` is then called with `closed`.
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

// While the handshake lasts.
extension WebSocketClient: TCPHandler {
    /// Bytes of the answer.
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

    /// The server ended the connection.
    func ended() {
        fail(NetError(.closed, "the server ended the connection during a WebSocket's handshake"))
    }

    /// Nothing to do.
    func drained() {}

    /// The handshake took too long.
    func deadlinePassed() {
        fail(NetError(.timedOut, "a WebSocket's handshake took more than \(target.timeout)"))
    }

    /// The connection is gone.
    func closed(_ error: NetError?) {
        tcp = nil
        fail(error ?? NetError(.closed, "a WebSocket's handshake was given up"))
    }
}
