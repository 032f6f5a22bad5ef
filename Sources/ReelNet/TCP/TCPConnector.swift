import CLibuv
import Glibc

extension TCPConnection {
    /// Connects to a host by address or name. On the loop.
    ///
    /// The addresses of a name are tried in order until one answers or the time is up. With TLS the handshake is done
    /// within the same time, and the connection then reads already. A plain connection does not read before
    /// `resumeReading`.
    ///
    /// - Parameters:
    ///   - loop: The loop of the connection.
    ///   - host: An address or a name.
    ///   - port: The port.
    ///   - tls: The TLS settings; nil for a plain connection.
    ///   - timeout: The time for the look-up, all attempts and the handshake.
    ///   - then: Called on the loop once, and never before this function returns.
    /// - Returns: The attempt, to cancel it.
    @discardableResult
    static func connect(
        on loop: EventLoop,
        host: String,
        port: UInt16,
        tls: TLSClient?,
        timeout: Duration,
        then: @escaping (Result<TCPConnection, NetError>) -> Void
    ) -> TCPConnector {
        loop.checkIsolated()
        let connector = TCPConnector(loop, "\(host):\(port)", timeout, then)
        connector.security = tls.map { ($0, host) }
        connector.start(host, port)
        return connector
    }
}

/// An attempt to connect: it looks the name up, then tries one address after the other.
final class TCPConnector {
    private let loop: EventLoop
    private let target: String
    private var then: ((Result<TCPConnection, NetError>) -> Void)?
    private var timer: LoopTimer?
    private var addresses: [SocketAddress] = []
    private var current: TCPConnection?
    fileprivate var security: (client: TLSClient, host: String)?

    fileprivate init(
        _ loop: EventLoop,
        _ target: String,
        _ timeout: Duration,
        _ then: @escaping (Result<TCPConnection, NetError>) -> Void
    ) {
        self.loop = loop
        self.target = target
        self.then = then
        timer = loop.timer(after: timeout) { [unowned self] in
            finish(.failure(NetError(.timedOut, "connecting to \(self.target) took more than \(timeout)")))
        }
    }

    /// Cancels the attempt; the result is then `closed`. Does nothing if `then` has been called already.
    func cancel() {
        finish(.failure(NetError(.closed, "connecting to \(target) was cancelled")))
    }

    fileprivate func start(_ host: String, _ port: UInt16) {
        if let address = try? SocketAddress(host, port: port) {
            addresses = [address]
            return tryNext(after: NetError(.unreachable, "connecting to \(target)"))
        }
        let request = UnsafeMutablePointer<uv_getaddrinfo_t>.allocate(capacity: 1)
        request.pointee.data = Context.pass(self)
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        let status = uv_getaddrinfo(
            loop.handle,
            request,
            { request, status, list in
                let connector = Context.take(request!.pointee.data, as: TCPConnector.self)
                request!.deallocate()
                connector.lookedUp(status, list)
                uv_freeaddrinfo(list)
            },
            host,
            String(port),
            &hints
        )
        if status != 0 {
            _ = Context.take(request.pointee.data, as: TCPConnector.self)
            request.deallocate()
            later { [self] in finish(.failure(NetError(status: status, "looking up \(host)"))) }
        }
    }

    private func lookedUp(_ status: Int32, _ list: UnsafeMutablePointer<addrinfo>?) {
        var next = list
        while let entry = next {
            if let address = entry.pointee.ai_addr.flatMap({ SocketAddress($0) }) { addresses.append(address) }
            next = entry.pointee.ai_next
        }
        tryNext(after: NetError(status: status == 0 ? UV_EAI_NONAME.rawValue : status, "looking up \(target)"))
    }

    private func tryNext(after error: NetError) {
        guard then != nil else { return }
        guard !addresses.isEmpty else { return finish(.failure(error)) }
        let address = addresses.removeFirst()
        let connection = TCPConnection(loop: loop)
        current = connection
        let request = UnsafeMutablePointer<uv_connect_t>.allocate(capacity: 1)
        request.pointee.data = Context.pass(self)
        let status = address.withSockaddr { pointer, _ in
            uv_tcp_connect(request, connection.handle, pointer) { request, status in
                let connector = Context.take(request!.pointee.data, as: TCPConnector.self)
                request!.deallocate()
                connector.connected(status)
            }
        }
        // Examples: there is no route to the address, or no descriptor is left.
        if status != 0 {
            _ = Context.take(request.pointee.data, as: TCPConnector.self)
            request.deallocate()
            later { [self] in connected(status) }
        }
    }

    /// Runs `body` in a later round, so that the caller holds the connector before the result arrives.
    private func later(_ body: @escaping () -> Void) {
        loop.timer(after: .zero, body)
    }

    private func connected(_ status: Int32) {
        // After the attempt's end the connection was closed, and this is libuv's callback for the close.
        guard let connection = current else { return }
        if status == 0 {
            uv_tcp_nodelay(connection.handle, 1)
            if let security { return secure(connection, security) }
            current = nil
            finish(.success(connection))
        } else {
            current = nil
            connection.close()
            tryNext(after: NetError(status: status, "connecting to \(target)"))
        }
    }

    private func secure(_ connection: TCPConnection, _ security: (client: TLSClient, host: String)) {
        do throws(NetError) {
            let session = try TLSSession(security.client, host: security.host)
            connection.handler = self
            connection.secure(session)
            connection.resumeReading()
        } catch {
            finish(.failure(error))
        }
    }

    private func finish(_ result: Result<TCPConnection, NetError>) {
        guard let then else { return }
        self.then = nil
        timer?.cancel()
        let current = current
        self.current = nil
        current?.close()
        then(result)
    }
}

@available(*, unavailable)
extension TCPConnector: Sendable {}

// The handler during the TLS handshake.
extension TCPConnector: TCPHandler {
    func secured() {
        guard let connection = current else { return }
        current = nil
        connection.handler = nil
        finish(.success(connection))
    }

    func closed(_ error: NetError?) {
        guard current != nil else { return }
        current = nil
        finish(.failure(error ?? NetError(.closed, "connecting to \(target) was given up")))
    }

    func received(_ bytes: Span<UInt8>) {}
    func ended() {}
    func drained() {}
    func deadlinePassed() {}
}
