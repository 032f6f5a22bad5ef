/// An open WebSocket, of a server or of a client, on its loop.
///
/// There are tens of thousands: its fields are in the order that leaves no room between them.
public final class WebSocket {
    /// Which side this is, and what belongs to it.
    enum Side {
        /// Of the server that counts it, from this origin.
        case server(HTTPServer, origin: UInt64)
        indirect case client(subprotocol: String?, closeDeadline: Duration)
    }

    /// Why it has ended.
    private indirect enum Ending {
        case broken
        case said(code: UInt16, reason: String)
    }

    private let side: Side
    private var sentClose = false
    /// Whether the answer to the close frame is late because the peer has not got it yet.
    private var isOverdue = false
    /// The peer has ended its side while received bytes still wait for their turn.
    private var endsLater = false
    /// Whether no further message is handed over until `release`.
    private var isHeld = false
    /// Whether both sides have agreed on permessage-deflate.
    private let deflates: Bool
    private let tcp: TCPConnection
    private var handler: (any WebSocketHandler)?
    private var ending = Ending.broken
    /// Received bytes that wait for their turn. The socket is not read meanwhile.
    private var waiting: [UInt8] = []
    private var decoder: WebSocketDecoder

    private static let maxPendingForPong = 64 << 10
    /// How long the frames of one connection are handled before other connections of the loop have their turn.
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

    /// The loop that it lives on.
    public var loop: EventLoop { tcp.loop }

    /// The subprotocol that both sides agreed on; known on the client's side.
    public var subprotocol: String? { if case .client(let subprotocol, _) = side { subprotocol } else { nil } }

    private var isServer: Bool { if case .server = side { true } else { false } }

    /// Tells the owner, then takes what came behind the handshake.
    func open(_ rest: Span<UInt8>) {
        handler?.opened(self)
        received(rest)
        if waiting.isEmpty, !isHeld { tcp.resumeReading() }
    }

    // MARK: Sending

    /// Bytes sent and not yet with the kernel: what a slow reader costs.
    public var pendingBytes: Int { tcp.pendingBytes }

    /// Bytes written so far.
    public var writtenBytes: Int { tcp.writtenBytes }

    /// Looks whether the far side's kernel has taken what it had to since the look before.
    public func checkReadingPace() -> SlowReaderDetector.Finding { tcp.checkReadingPace() }

    /// How much has come of a message that is not whole yet; nil: none has begun.
    public var partBytes: Int? { decoder.partBytes }

    /// The largest message that is taken, in bytes, packed or not. A change holds for frames that begin after it.
    public var maxMessage: Int {
        get { decoder.maxMessage }
        set { decoder.maxMessage = newValue }
    }

    /// Whether nothing can be sent any more.
    public var isClosed: Bool { sentClose || tcp.isClosed }

    /// The far end; nil once it is gone.
    public var peer: SocketAddress? { tcp.peer }

    /// The client's address, as far as trusted proxies say so; nil once it is gone.
    public var client: SocketAddress? { forwarded ?? tcp.peer }

    /// The address in the `Forwarded` header of a trusted proxy; nil: there is none.
    var forwarded: SocketAddress?

    /// Sends a frame that was encoded before; its bytes are shared. A server's alone: a client masks each message.
    public func send(_ frame: WebSocketFrame) {
        precondition(isServer, "a client has to mask what it sends")
        if !sentClose { tcp.write(deflates ? frame.packed(by: loop.deflater) : frame.bytes) }
    }

    /// The same without waiting for the end of the loop's round, unless something waits already: for one of many who
    /// get the frame, and most often nothing else in this round.
    public func sendNow(_ frame: WebSocketFrame) {
        precondition(isServer, "a client has to mask what it sends")
        if !sentClose { tcp.writeNow(deflates ? frame.packed(by: loop.deflater) : frame.bytes) }
    }

    /// Sends a text message. The bytes must be UTF-8.
    public func send(text: [UInt8]) {
        send(.text, text)
    }

    /// Sends a binary message.
    public func send(binary: [UInt8]) {
        send(.binary, binary)
    }

    /// Sends a ping with a payload of at most 125 bytes; `receivedPong` with the same follows.
    public func ping(_ payload: [UInt8] = []) {
        send(.ping, payload)
    }

    /// Begins to close: what was sent before goes out, then the close frame; messages that still come are dropped.
    /// A peer that has got it and does not answer in time, as the server's settings or the client's target say, is cut
    /// off, and so is one that does not read what comes before it. Without a code: none is given.
    public func close(code: UInt16? = 1000, reason: String = "") {
        guard !sentClose else { return }
        send(.close, WebSocketFrame.closePayload(code, reason))
        sentClose = true
        decoder.dropMessages()
        tcp.setDeadline(deadlines.answer)
        release()
    }

    /// For the answer to the close frame, and between two looks at how a peer reads that has not got it yet.
    private var deadlines: (answer: Duration, pace: Duration) {
        switch side {
        case .server(let server, _): (server.settings.closeDeadline, server.settings.idleDeadline)
        case .client(_, let deadline): (deadline, deadline)
        }
    }

    /// Cuts it off at once.
    public func abort() {
        tcp.close()
    }

    /// The same for a peer that does not read: what the kernel still holds for it is thrown away too.
    public func reset() {
        tcp.reset()
    }

    /// Reads no more until `resumeReading`: the peer feels it when the kernel's buffers are full.
    public func pauseReading() { tcp.pauseReading() }

    /// Goes on to read.
    public func resumeReading() { tcp.resumeReading() }

    /// Hands over no further message, and reads no more, until `release`: the owner has to finish with one message
    /// before the next one. Called while a message is handed over.
    public func hold() { isHeld = true }

    /// Ends `hold`. Messages that came meanwhile are handed over in a later round of the loop. A socket that closes is
    /// released.
    public func release() {
        guard isHeld else { return }
        isHeld = false
        goOnLater()
    }

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
    /// Bytes of the connection.
    func received(_ bytes: Span<UInt8>) {
        guard waiting.isEmpty, !isHeld else {
            // TLS hands one read of the socket over in several calls.
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

    /// Keeps the rest of the bytes, and handles them after the other connections of the loop, or once it is released.
    private func wait(_ bytes: Span<UInt8>, from position: Int) {
        bytes.extracting(position..<bytes.count).withUnsafeBufferPointer { waiting = Array($0) }
        tcp.pauseReading()
        if !isHeld { goOnLater() }
    }

    private func goOnLater() {
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
        // Who pings and never reads gets no more pongs.
        case .ping(let payload): if tcp.pendingBytes < Self.maxPendingForPong { send(.pong, payload) }
        case .pong(let payload): if !sentClose { handler?.receivedPong(payload, from: self) }
        case .close(let code, let reason):
            ending = .said(code: code ?? 1005, reason: reason)
            close(code: code)
            tcp.finish()
        }
    }

    private func fail(_ violation: WebSocketViolation) {
        ending = .said(code: violation.code, reason: violation.detail)
        close(code: violation.code, reason: violation.detail)
        tcp.finish()
    }

    /// The peer's side has ended: with a close frame, or broken.
    func ended() {
        endsLater = !waiting.isEmpty || isHeld
        if endsLater { return }
        if !sentClose { tcp.setDeadline(deadlines.answer) }
        tcp.finish()
    }

    /// All bytes are with the kernel.
    func drained() {
        handler?.drained(self)
    }

    /// The peer has not answered the close frame, or has ended its side and not read all. As long as it reads, it may.
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

    /// The connection is gone.
    func closed(_ error: NetError?) {
        guard let handler else { return }
        self.handler = nil
        if case .server(let server, let origin) = side { server.webSocketEnded(of: origin) }
        switch ending {
        case .broken: handler.closed(self, code: 1006, reason: "")
        case .said(let code, let reason): handler.closed(self, code: code, reason: reason)
        }
    }
}
