/// A request that is under way. It lives until its last event, even if its caller discards it.
public final class HTTPCall {
    private let client: HTTPClient
    private let request: HTTPClientRequest
    private var receive: ((HTTPClient.Event) -> Void)?
    private var connector: TCPConnector?
    private var tcp: TCPConnection?
    private var decoder: HTTPResponseDecoder
    private var isReused = false
    private var hasAnswer = false
    private var staysOpen = false
    /// The time without any byte from the server after which the request fails.
    private var timeout: Duration

    init(_ client: HTTPClient, _ request: HTTPClientRequest, _ receive: @escaping (HTTPClient.Event) -> Void) {
        self.client = client
        self.request = request
        self.receive = receive
        decoder = HTTPResponseDecoder()
        timeout = request.timeout
        decoder.answersHead = request.method == "HEAD"
    }

    /// Cancels the request; the event `failed` follows unless the last event was delivered already. On the loop.
    public func cancel() {
        fail(NetError(.closed, "the request was cancelled"))
    }

    /// Sets a new limit on the server's silence, from now on. On the loop.
    public func allowSilence(of duration: Duration) {
        timeout = duration
        tcp?.setDeadline(duration)
    }

    /// Stops reading until `resume`. Meant for a caller that passes the response on to a slower reader. On the loop.
    public func pause() {
        tcp?.clearDeadline()
        tcp?.pauseReading()
    }

    /// Resumes reading. On the loop.
    public func resume() {
        tcp?.setDeadline(timeout)
        tcp?.resumeReading()
    }

    func connect() {
        connector = TCPConnection.connect(
            on: client.loop,
            host: request.host,
            port: request.port,
            tls: request.tls,
            timeout: request.timeout
        ) { [self] result in
            connector = nil
            switch result {
            case .success(let tcp): begin(on: tcp, isReused: false)
            case .failure(let error): fail(error)
            }
        }
    }

    func begin(on tcp: TCPConnection, isReused: Bool) {
        self.isReused = isReused
        self.tcp = tcp
        tcp.handler = self
        tcp.write(request.bytes)
        resume()
    }

    private func fail(_ error: NetError) {
        let (receive, tcp) = (receive, tcp)
        self.receive = nil
        self.tcp = nil
        connector?.cancel()
        connector = nil
        tcp?.close()
        receive?(.failed(error))
    }

    private func handle(_ event: HTTPResponseDecoder.Event, _ bytes: Span<UInt8>) {
        switch event {
        case .head(let head):
            hasAnswer = true
            staysOpen = !head.isOld && !head.headers.has("connection", token: "close")
            receive?(.head(head))
        case .data(let range):
            receive?(.data(bytes.extracting(range).withUnsafeBufferPointer(Array.init)))
        case .end: finish()
        }
    }

    private func finish() {
        let (receive, tcp) = (receive, tcp)
        self.receive = nil
        self.tcp = nil
        if let tcp {
            if staysOpen {
                client.keep(tcp, request.origin)
            } else {
                tcp.handler = nil
                tcp.finish()
            }
        }
        receive?(.end)
    }
}

@available(*, unavailable)
extension HTTPCall: Sendable {}

extension HTTPCall: TCPHandler {
    func received(_ bytes: Span<UInt8>) {
        tcp?.setDeadline(timeout)
        var position = 0
        do {
            while receive != nil, let event = try decoder.next(bytes, &position) {
                // Bytes after the response belong to no request.
                if event == .end, position < bytes.count { staysOpen = false }
                handle(event, bytes)
            }
        } catch {
            fail(NetError(.violation, "the answer of \(request.authority): \(error.detail)"))
        }
    }

    func ended() {
        if decoder.endsWithConnection {
            staysOpen = false
            finish()
        } else {
            broke(NetError(.closed, "\(request.authority) ended the connection before its answer"))
        }
    }

    func drained() {
        tcp?.setDeadline(timeout)
    }

    func deadlinePassed() {
        fail(NetError(.timedOut, "\(request.authority) was silent for \(timeout)"))
    }

    func closed(_ error: NetError?) {
        guard tcp != nil else { return }
        tcp = nil
        broke(error ?? NetError(.closed, "the connection was closed"))
    }

    /// Handles a broken connection. The server may have closed a kept connection while the request was on its way. So a
    /// request that is safe to repeat is sent again.
    private func broke(_ error: NetError) {
        guard isReused, !hasAnswer, request.method == "GET" || request.method == "HEAD" else { return fail(error) }
        let tcp = tcp
        self.tcp = nil
        tcp?.close()
        connect()
    }
}
