/// An open WebSocket of a server or a client. All its methods are called on its loop.
///
/// There are tens of thousands of sockets, so the order of the fields leaves no padding between them.
public final class WebSocket {
    /// The role of this side, with its data.
    enum Side {
        /// A socket of this server. The server's gate counts the connection under `origin`.
        case server(HTTPServer, origin: UInt64)
        indirect case client(subprotocol: String?, closeDeadline: Duration)
    }

    /// The reason for which the socket has ended.
    private indirect enum Ending {
        case broken
        case closed(code: UInt16, reason: String)
    }

    private let side: Side
    private var sentClose = false
    /// True if the close deadline has passed once while the peer had not received all bytes.
    private var isOverdue = false
    /// True if the peer has ended its side while received bytes still wait to be handled.
    private var endsLater = false
    /// The number of times that `release` must be called before a further message is delivered.
    private var holds = 0
    /// True if both sides have agreed on permessage-deflate.
    private let deflates: Bool
    private let tcp: TCPConnection
    private var handler: (any WebSocketHandler)?
    private var ending = Ending.broken
    /// Received bytes that wait to be handled. The socket is not read meanwhile.
    private var waiting: [UInt8] = []
    private var decoder: WebSocketDecoder

    private static let maxPendingForPong = 64 << 10
    /// The time for which the frames of one connection are handled before other connections of the loop have their
    /// turn.
    private static let turn = Duration.microseconds(100)

    init(
        _ tcp: TCPConnection,
        _ side: Side,
        maxMessage: Int,
        deflates: Bool = false,
        handler: any WebSocketHandler
    ) {
        self.tcp = tcp
        self.side = side
        self.handler = handler
        self.deflates = deflates
        let role: WebSocketDecoder.Role = if case .server = side { .server } else { .client }
        decoder = WebSocketDecoder(role, maxMessage: maxMessage, inflates: deflates)
        tcp.handler = self
        tcp.clearDeadline()
    }

    /// The loop that the socket belongs to.
    public var loop: EventLoop { tcp.loop }

    /// The subprotocol that both sides have agreed on; known on the client's side only.
    public var subprotocol: String? { if case .client(let subprotocol, _) = side { subprotocol } else { nil } }

    private var isServer: Bool { if case .server = side { true } else { false } }

    /// Calls the owner's `opened`, then handles the bytes that arrived after the handshake.
    func open(_ rest: Span<UInt8>) {
        handler?.opened(self)
        received(rest)
        if waiting.isEmpty, !isHeld { tcp.resumeReading() }
    }

    // MARK: Sending

    /// The number of bytes that were sent and are not with the kernel yet: the memory that a slow reader costs.
    public var pendingBytes: Int { tcp.pendingBytes }

    /// The number of bytes written since the start.
    public var writtenBytes: Int { tcp.writtenBytes }

    /// Checks that the peer's kernel has acknowledged enough bytes since the previous check. On the loop.
    public func checkReadingPace() -> SlowReaderDetector.Finding { tcp.checkReadingPace() }

    /// The number of bytes that have arrived of an incomplete message; nil if no message has begun.
    public var partBytes: Int? { decoder.partBytes }

    /// The largest accepted message in bytes, both packed and unpacked. A change is valid for frames that begin after
    /// it.
    public var maxMessage: Int {
        get { decoder.maxMessage }
        set { decoder.maxMessage = newValue }
    }

    /// True if nothing can be sent any more.
    public var isClosed: Bool { sentClose || tcp.isClosed }

    /// The remote address, or the address that a proxy has named for the connection; nil once the connection is gone.
    public var peer: SocketAddress? { tcp.peer }

    /// The client's address. It comes from trusted proxies if they name it. Nil once the connection is gone.
    public var client: SocketAddress? { forwarded ?? tcp.peer }

    /// The address in the `Forwarded` header of a trusted proxy; nil if there is none.
    var forwarded: SocketAddress?

    /// Sends a frame that was encoded before; its bytes are shared with other sockets. Only for a server, because a
    /// client has to mask each message. On the loop.
    public func send(_ frame: WebSocketFrame) {
        precondition(isServer, "a client has to mask what it sends")
        if !sentClose { tcp.write(deflates ? frame.packed(by: loop.deflater) : frame.bytes) }
    }

    /// Sends a frame at once, without waiting for the end of the loop's round; if bytes wait already, it queues the
    /// frame. Meant for a frame that goes to many sockets, most of which get nothing else in this round. On the loop.
    public func sendNow(_ frame: WebSocketFrame) {
        precondition(isServer, "a client has to mask what it sends")
        if !sentClose { tcp.writeNow(deflates ? frame.packed(by: loop.deflater) : frame.bytes) }
    }

    /// Sends a text message. The bytes must be UTF-8. On the loop.
    public func send(text: [UInt8]) {
        send(.text, text)
    }

    /// Sends a binary message. On the loop.
    public func send(binary: [UInt8]) {
        send(.binary, binary)
    }

    /// Sends a ping with a payload of at most 125 bytes. The owner's `receivedPong` is called with the same payload
    /// later. On the loop.
    public func ping(_ payload: [UInt8] = []) {
        send(.ping, payload)
    }

    /// Begins to close: sends the waiting bytes, then the close frame. Messages that still arrive are dropped. On the
    /// loop.
    ///
    /// The connection is cut off if the peer has received the close frame and does not answer in time. It is also cut
    /// off if the peer does not read the bytes before that frame. The times are in the server's settings or the
    /// client's target.
    ///
    /// - Parameters:
    ///   - code: The close code; nil for a close frame without a code.
    ///   - reason: The reason; it is cut to 123 bytes.
    public func close(code: UInt16? = 1000, reason: String = "") {
        guard !sentClose else { return }
        send(.close, WebSocketFrame.closePayload(code, reason))
        sentClose = true
        decoder.dropMessages()
        tcp.setDeadline(deadlines.answer)
        guard isHeld else { return }
        holds = 0
        handleWaitingLater()
    }

    /// The time for the answer to the close frame, and the time between two checks of a peer that has not received it
    /// yet.
    private var deadlines: (answer: Duration, pace: Duration) {
        switch side {
        case .server(let server, _): (server.settings.closeDeadline, server.settings.idleDeadline)
        case .client(_, let deadline): (deadline, deadline)
        }
    }

    /// Closes the connection at once. On the loop.
    public func abort() {
        tcp.close()
    }

    /// Closes the connection of a peer that does not read. The bytes that the kernel still holds for the peer are
    /// discarded too. On the loop.
    public func reset() {
        tcp.reset()
    }

    /// Stops reading until `resumeReading`. The peer notices it when the kernel's buffers are full. On the loop.
    public func pauseReading() { tcp.pauseReading() }

    /// Resumes reading. On the loop.
    public func resumeReading() { tcp.resumeReading() }

    /// Stops the delivery of messages and the reading until `release`, because the owner has to finish one message
    /// before the next. Called by the owner during the delivery of a message, or while the socket is held, on the loop.
    /// A socket that is held twice is released twice.
    public func hold() { holds += 1 }

    /// Ends `hold`. Messages that have arrived meanwhile are delivered in a later round of the loop. A socket that
    /// closes is released. On the loop.
    public func release() {
        guard isHeld else { return }
        holds -= 1
        if holds == 0 { handleWaitingLater() }
    }

    private var isHeld: Bool { holds > 0 }

    private func send(_ opcode: WebSocketFrame.Opcode, _ payload: [UInt8]) {
        guard !sentClose else { return }
        if deflates, !opcode.isControl { return send(WebSocketFrame(opcode, payload)) }
        let mask = isServer ? nil : UInt32.random(in: .min ... .max)
        tcp.write(WebSocketFrame.encode(opcode, payload, mask: mask))
    }
}

@available(*, unavailable)
extension WebSocket: Sendable {}

extension WebSocket: TCPHandler {
    /// Called with bytes of the connection.
    func received(_ bytes: Span<UInt8>) {
        guard waiting.isEmpty, !isHeld else {
            // TLS delivers one read of the socket in several calls.
            return bytes.withUnsafeBufferPointer { waiting.append(contentsOf: $0) }
        }
        var position = 0
        var isPart = true
        let end = ContinuousClock.now + Self.turn
        do throws(WebSocketViolation) {
            while !tcp.isClosed, let event = try decoder.next(bytes, &position) {
                isPart = false
                handle(event)
                if isHeld || isServer && position < bytes.count && ContinuousClock.now >= end {
                    return wait(bytes, from: position)
                }
            }
            if case .server(let server, _) = side, server.gate.lacksMemory(for: decoder.heldBytes) {
                throw WebSocketViolation(code: 1013, detail: server.gate.says(.memory))
            }
            if isPart, !isClosed { handler?.receivedPart(from: self) }
        } catch {
            fail(error)
        }
    }

    /// Keeps the rest of the bytes. They are handled after other connections of the loop, or once the socket is
    /// released.
    private func wait(_ bytes: Span<UInt8>, from position: Int) {
        bytes.extracting(position..<bytes.count).withUnsafeBufferPointer { waiting = Array($0) }
        tcp.pauseReading()
        if !isHeld { handleWaitingLater() }
    }

    private func handleWaitingLater() {
        loop.runInBacklog { [self] in
            let bytes = waiting
            waiting = []
            if !tcp.isClosed { received(bytes.span) }
            guard waiting.isEmpty, !isHeld else { return }
            tcp.resumeReading()
            if endsLater { ended() }
        }
    }

    private func handle(_ event: WebSocketDecoder.Event) {
        switch event {
        case .text(let payload): if !sentClose { handler?.received(text: payload, from: self) }
        case .binary(let payload): if !sentClose { handler?.received(binary: payload, from: self) }
        // A peer that sends pings and never reads gets no more pongs.
        case .ping(let payload): if tcp.pendingBytes < Self.maxPendingForPong { send(.pong, payload) }
        case .pong(let payload): if !sentClose { handler?.receivedPong(payload, from: self) }
        case .close(let code, let reason):
            ending = .closed(code: code ?? 1005, reason: reason)
            close(code: code)
            tcp.finish()
        }
    }

    private func fail(_ violation: WebSocketViolation) {
        ending = .closed(code: violation.code, reason: violation.detail)
        close(code: violation.code, reason: violation.detail)
        tcp.finish()
    }

    /// Called when the peer has ended its side, with a close frame or without one.
    func ended() {
        endsLater = !waiting.isEmpty || isHeld
        if endsLater { return }
        if !sentClose { tcp.setDeadline(deadlines.answer) }
        tcp.finish()
    }

    /// Called when the kernel has taken all bytes.
    func drained() {
        handler?.drained(self)
    }

    /// Called when the peer has not answered the close frame in time, or has ended its side and not read everything.
    /// The connection stays while the peer reads.
    func deadlinePassed() {
        guard tcp.unacknowledgedBytes > 0 else { return tcp.close() }
        let finding = tcp.checkReadingPace()
        if isOverdue, finding == .tooSlow {
            if case .server(let server, _) = side { server.gate.metSlow() }
            return tcp.reset()
        }
        isOverdue = true
        tcp.setDeadline(deadlines.pace)
    }

    /// Called when the connection is gone.
    func closed(_ error: NetError?) {
        guard let handler else { return }
        self.handler = nil
        if case .server(let server, let origin) = side { server.webSocketEnded(of: origin) }
        switch ending {
        case .broken: handler.closed(self, code: 1006, reason: "")
        case .closed(let code, let reason): handler.closed(self, code: code, reason: reason)
        }
    }
}
