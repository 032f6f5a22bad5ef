/// One request of a connection and its answer. Either `respond`, or `start`, any number of `write`, `end`.
/// On the loop; whatever is called behind the end or on a broken connection does nothing. The answer to HEAD is the
/// head of what GET would be answered: `start` is its end.
public final class HTTPExchange {
    /// The loop that it lives on.
    public let loop: EventLoop
    /// Called when all that was written is with the kernel: time to write more of a long answer.
    public var drained: (() -> Void)?
    /// Called if the connection breaks before the end.
    public var broken: (() -> Void)?

    /// The head of the request.
    public let request: HTTPRequestHead
    /// Fields that the answer carries besides its own, whatever it is.
    public var moreHeaders = HTTPHeaders()

    private enum State {
        case waiting
        case streaming(isChunked: Bool)
        /// All was written, and is being packed.
        case ending(isChunked: Bool)
        case over
    }

    private var connection: HTTPServerConnection?
    private var state = State.waiting
    private var packing: PackedBody?

    init(_ connection: HTTPServerConnection, _ request: HTTPRequestHead) {
        loop = connection.loop
        self.connection = connection
        self.request = request
    }

    /// Whether an answer, or the rest of one, can still be given.
    public var isOpen: Bool {
        switch state {
        case .waiting, .streaming: true
        case .ending, .over: false
        }
    }

    /// Bytes written and not yet with the kernel.
    public var pendingBytes: Int { (connection?.pendingBytes ?? 0) + (packing?.pendingBytes ?? 0) }

    /// Called once, with the status, when the answer begins.
    public var answered: ((Int) -> Void)?

    /// The client's address, as far as trusted proxies say so.
    public var client: SocketAddress? { request.client }

    /// Gives the whole answer.
    public func respond(_ response: HTTPResponse) {
        guard case .waiting = state, let connection else { return }
        let hasBody = response.status != 204 && response.status != 304
        if hasBody, packs(response.headers, response.body.count) {
            start(status: response.status, headers: response.headers, length: response.body.count)
            write(response.body)
            return end()
        }
        var headers = response.headers
        // A 304 stands for an answer that may be long.
        if response.status != 204 { sayVary(&headers, hasBody ? response.body.count : nil) }
        if hasBody { headers.add("content-length", String(response.body.count)) }
        var bytes = head(response.status, headers, connection)
        if hasBody, request.method != "HEAD" {
            if response.body.count < 4096 {
                bytes += response.body
            } else {
                connection.write(bytes)
                bytes = response.body
            }
        }
        connection.write(bytes)
        finish()
    }

    /// Begins an answer of the given length, or of any length, in chunks.
    public func start(status: Int, headers: HTTPHeaders, length: Int? = nil) {
        guard case .waiting = state, let connection else { return }
        var (headers, length) = (headers, length)
        sayVary(&headers, length)
        let (isHead, isWorthPacking) = (request.method == "HEAD", packs(headers, length))
        if isWorthPacking, !isHead {
            packing = PackedBody(on: loop) { [weak self] bytes, isLast in self?.packed(bytes, isLast) }
        }
        if packing != nil || isHead && isWorthPacking {
            length = nil
            headers.add("content-encoding", "gzip")
            headers.weakenETag()
        }
        let isChunked = length == nil && !request.isOld
        if let length { headers.add("content-length", String(length)) }
        if isChunked { headers.add("transfer-encoding", "chunked") }
        if length == nil, request.isOld { connection.closesAfterAnswer = true }
        state = .streaming(isChunked: isChunked)
        connection.write(head(status, headers, connection))
        if isHead { finish() }
    }

    /// Writes a piece of the body.
    public func write(_ bytes: [UInt8]) {
        guard case .streaming(let isChunked) = state, !bytes.isEmpty else { return }
        if let packing { packing.write(bytes) } else { write(bytes, isChunked: isChunked) }
    }

    /// Ends a streamed answer.
    public func end() {
        guard case .streaming(let isChunked) = state else { return }
        state = .ending(isChunked: isChunked)
        if let packing { packing.end() } else { finishStream(isChunked: isChunked) }
    }

    /// Breaks the connection off, so that the client sees that a streamed answer is not whole.
    public func abort() {
        connection?.abort()
    }

    // MARK: Packing

    /// Whether the body is worth it, and nobody has packed it yet. What is said a bit at a time would wait in the
    /// packer.
    private func isPackable(_ headers: HTTPHeaders, _ length: Int?) -> Bool {
        (length ?? .max) > PackedBody.bytesMin && headers["content-encoding"] == nil
            && headers["content-type"] != "text/event-stream"
    }

    /// Tells caches that others may get it packed, or plain. An answer that is passed on may say so already.
    private func sayVary(_ headers: inout HTTPHeaders, _ length: Int?) {
        guard isPackable(headers, length), !headers.has("vary", token: "accept-encoding") else { return }
        headers.add("vary", "accept-encoding")
    }

    private func packs(_ headers: HTTPHeaders, _ length: Int?) -> Bool {
        request.acceptsGzip && isPackable(headers, length)
    }

    private func packed(_ bytes: [UInt8], _ isLast: Bool) {
        switch state {
        case .streaming(let isChunked), .ending(let isChunked):
            if !bytes.isEmpty { write(bytes, isChunked: isChunked) }
            if isLast { return finishStream(isChunked: isChunked) }
            // What the packer keeps for itself never drains.
            if pendingBytes == 0 { drained?() }
        case .waiting, .over: break
        }
    }

    // MARK: What the connection gets

    private func head(_ status: Int, _ headers: HTTPHeaders, _ connection: HTTPServerConnection) -> [UInt8] {
        answered?(status)
        answered = nil
        var headers = headers
        for field in moreHeaders.fields { headers.add(field.name, field.value) }
        return connection.head(status, headers)
    }

    private func write(_ bytes: [UInt8], isChunked: Bool) {
        if isChunked { connection?.write(HTTPEncoder.chunkStart(bytes.count)) }
        connection?.write(bytes)
        if isChunked { connection?.write(HTTPEncoder.chunkEnd) }
    }

    private func finishStream(isChunked: Bool) {
        if isChunked { connection?.write(HTTPEncoder.lastChunk) }
        finish()
    }

    private func finish() {
        state = .over
        let connection = connection
        release()
        connection?.exchangeEnded()
    }

    // MARK: What the connection tells

    func connectionDrained() {
        if packing?.pendingBytes ?? 0 == 0 { drained?() }
    }

    func connectionBroke() {
        if case .over = state { return }
        state = .over
        let broken = broken
        release()
        broken?()
    }

    private func release() {
        connection = nil
        packing = nil
        drained = nil
        broken = nil
    }
}

@available(*, unavailable)
extension HTTPExchange: Sendable {}
