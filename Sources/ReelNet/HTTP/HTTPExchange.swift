/// A request of a connection and its response. On the loop.
///
/// The handler calls either `respond`, or `start`, then any number of `write`, then `end`. Calls after the end or on a
/// broken connection do nothing, and closures that are set then are dropped. The response to HEAD is the head of the
/// response to GET: it ends with `start`.
public final class HTTPExchange {
    /// The loop that the exchange belongs to.
    public let loop: EventLoop
    /// Called when the kernel has taken all written bytes: the handler may then write more of a long response.
    public var drained: (() -> Void)? {
        didSet { if isOver { drained = nil } }
    }
    /// Called if the connection breaks before the response has ended.
    public var broken: (() -> Void)? {
        didSet { if isOver { broken = nil } }
    }

    /// The head of the request.
    public let request: HTTPRequestHead
    /// Header fields that are added to the response, whatever it is.
    public var moreHeaders = HTTPHeaders()

    private enum State {
        case waiting
        case streaming(isChunked: Bool)
        /// All bytes were written, and the packer still works on them.
        case ending(isChunked: Bool)
        case over
    }

    /// The size in bytes from which a body is written as an array of its own. A smaller one is joined to the head.
    private static let joinedBodyMax = 4_096

    private var connection: HTTPServerConnection?
    private var state = State.waiting
    private var packing: PackedBody?

    init(_ connection: HTTPServerConnection, _ request: HTTPRequestHead) {
        loop = connection.loop
        self.connection = connection
        self.request = request
    }

    private var isOver: Bool { if case .over = state { true } else { false } }

    /// True if a response, or the rest of one, can still be written.
    public var isOpen: Bool {
        switch state {
        case .waiting, .streaming: true
        case .ending, .over: false
        }
    }

    /// The number of bytes that were written and are not with the kernel yet.
    public var pendingBytes: Int { (connection?.pendingBytes ?? 0) + (packing?.pendingBytes ?? 0) }

    /// Called once, with the status, when the response begins.
    public var answered: ((Int) -> Void)?

    /// The client's address. It comes from trusted proxies if they name it.
    public var client: SocketAddress? { request.client }

    /// Sends the whole response.
    public func respond(_ response: HTTPResponse) {
        guard case .waiting = state, let connection else { return }
        let hasBody = response.status != 204 && response.status != 304
        if hasBody, packs(response.headers, response.body.count) {
            start(status: response.status, headers: response.headers, length: response.body.count)
            write(response.body)
            return end()
        }
        var headers = response.headers
        // No `Vary` on 204, which has no body. A 304 stands for a response that may be long.
        if response.status != 204 { sayVary(&headers, hasBody ? response.body.count : nil) }
        if hasBody { headers.add("content-length", String(response.body.count)) }
        var bytes = head(response.status, headers, connection)
        if hasBody, request.method != "HEAD" {
            if response.body.count < Self.joinedBodyMax {
                bytes += response.body
            } else {
                connection.write(bytes)
                bytes = response.body
            }
        }
        connection.write(bytes)
        finish()
    }

    /// Begins a response that is written in pieces.
    ///
    /// - Parameters:
    ///   - status: The status code.
    ///   - headers: The header fields.
    ///   - length: The size of the body in bytes; nil if it is unknown, and the body is then sent in chunks.
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

    /// Writes a piece of the body. The pieces go to the kernel at the end of the round.
    public func write(_ bytes: [UInt8]) {
        guard case .streaming(let isChunked) = state, !bytes.isEmpty else { return }
        if let packing { packing.write(bytes) } else { write(bytes, isChunked: isChunked) }
    }

    /// Ends a response that was begun with `start`.
    public func end() {
        guard case .streaming(let isChunked) = state else { return }
        state = .ending(isChunked: isChunked)
        if let packing { packing.end() } else { finishStream(isChunked: isChunked) }
    }

    /// Closes the connection at once, so that the client sees that the response is incomplete.
    public func abort() {
        connection?.abort()
    }

    // MARK: Packing

    /// True if the body is large enough to pack and is not encoded yet. Event streams are never packed: their small
    /// pieces would wait in the packer.
    private func isPackable(_ headers: HTTPHeaders, _ length: Int?) -> Bool {
        (length ?? .max) > PackedBody.bytesMin && headers["content-encoding"] == nil
            && headers["content-type"] != "text/event-stream"
    }

    /// Adds `Vary`, which tells caches that other clients may get the body packed, or plain. A response from another
    /// node may have that field already.
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
            // The packer may have kept all bytes. Then the connection gets none, and no `drained` follows from it.
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
