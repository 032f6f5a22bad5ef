/// One request of a connection and its answer. Either `respond`, or `start`, any number of `write`, `end`.
/// On the loop; whatever is called behind the end or on a broken connection does nothing.
public final class HTTPExchange {
    /// The loop that it lives on.
    public let loop: EventLoop
    /// Called when all that was written is with the kernel: time to write more of a long answer.
    public var drained: (() -> Void)?
    /// Called if the connection breaks before the end.
    public var broken: (() -> Void)?

    private enum State {
        case waiting
        case streaming(isChunked: Bool)
        case over
    }

    private var connection: HTTPServerConnection?
    private let head: HTTPRequestHead
    private var state = State.waiting

    init(_ connection: HTTPServerConnection, _ head: HTTPRequestHead) {
        loop = connection.loop
        self.connection = connection
        self.head = head
    }

    /// Whether an answer, or the rest of one, can still be given.
    public var isOpen: Bool { if case .over = state { false } else { true } }

    /// Bytes written and not yet with the kernel.
    public var pendingBytes: Int { connection?.pendingBytes ?? 0 }

    /// Gives the whole answer.
    public func respond(_ response: HTTPResponse) {
        guard case .waiting = state, let connection else { return }
        var headers = response.headers
        let hasBody = response.status != 204 && response.status != 304
        if hasBody { headers.add("content-length", String(response.body.count)) }
        var bytes = connection.head(response.status, headers, head)
        if hasBody, head.method != "HEAD" {
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
        var headers = headers
        let isChunked = length == nil && !head.isOld
        if let length { headers.add("content-length", String(length)) }
        if isChunked { headers.add("transfer-encoding", "chunked") }
        if length == nil, head.isOld { connection.closesAfterAnswer = true }
        state = .streaming(isChunked: isChunked)
        connection.write(connection.head(status, headers, head))
    }

    /// Writes a piece of the body.
    public func write(_ bytes: [UInt8]) {
        guard case .streaming(let isChunked) = state, let connection, head.method != "HEAD", !bytes.isEmpty else {
            return
        }
        if isChunked { connection.write(HTTPEncoder.chunkStart(bytes.count)) }
        connection.write(bytes)
        if isChunked { connection.write(HTTPEncoder.chunkEnd) }
    }

    /// Ends a streamed answer.
    public func end() {
        guard case .streaming(let isChunked) = state, let connection else { return }
        if isChunked, head.method != "HEAD" { connection.write(HTTPEncoder.lastChunk) }
        finish()
    }

    /// Breaks the connection off, so that the client sees that a streamed answer is not whole.
    public func abort() {
        connection?.abort()
    }

    private func finish() {
        state = .over
        let connection = connection
        release()
        connection?.exchangeEnded()
    }

    func connectionBroke() {
        guard isOpen else { return }
        state = .over
        let broken = broken
        release()
        broken?()
    }

    private func release() {
        connection = nil
        drained = nil
        broken = nil
    }
}

@available(*, unavailable)
extension HTTPExchange: Sendable {}
