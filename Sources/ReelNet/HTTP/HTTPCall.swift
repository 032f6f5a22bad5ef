/// One request on its way. It lives until its last event, whether or not anyone keeps it.
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
    /// How long the other side may be silent.
    private var timeout: Duration

    init(_ client: HTTPClient, _ request: HTTPClientRequest, _ receive: @escaping (HTTPClient.Event) -> Void) {
        self.client = client
        self.request = request
        self.receive = receive
        decoder = HTTPResponseDecoder()
        timeout = request.timeout
        decoder.answersHead = request.method == "HEAD"
    }

    /// Gives up; `failed` follows unless the last event has come.
    public func cancel() {
        fail(NetError(.closed, "the request was cancelled"))
    }

    /// From now on the other side may be silent for so long.
    public func allowSilence(of duration: Duration) {
        timeout = duration
        tcp?.setDeadline(duration)
    }

    /// Reads no more until `resume`: for who passes an answer on to a slower reader.
    public func pause() {
        tcp?.clearDeadline()
        tcp?.pauseReading()
    }

    /// Goes on to read.
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
                // Bytes behind the answer belong to no question.
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

    /// A kept connection may have been closed by the other side while the question was on its way: what can be asked
    /// twice is asked again.
    private func broke(_ error: NetError) {
        guard isReused, !hasAnswer, request.method == "GET" || request.method == "HEAD" else { return fail(error) }
        let tcp = tcp
        self.tcp = nil
        tcp?.close()
        connect()
    }
}
