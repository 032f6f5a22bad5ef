/// What a WebSocket tells its owner; one owner may have many sockets. All calls are on the loop; none comes after
/// `closed`.
public protocol WebSocketHandler: AnyObject {
    /// The handshake is done: messages may go both ways.
    func opened(_ socket: WebSocket)
    /// A whole text message, valid UTF-8.
    func received(text: [UInt8], from socket: WebSocket)
    /// A whole binary message.
    func received(binary: [UInt8], from socket: WebSocket)
    /// A pong, and what it carries: that of the ping which it answers, if it answers one.
    func receivedPong(_ payload: [UInt8], from socket: WebSocket)
    /// Bytes came that end no message: one is on its way.
    func receivedPart(from socket: WebSocket)
    /// All that was written is with the kernel.
    func drained(_ socket: WebSocket)
    /// The socket is gone. The code is the peer's (1005: it gave none), the one of the violation for which this side
    /// failed it, or 1006 where the connection broke.
    func closed(_ socket: WebSocket, code: UInt16, reason: String)
}

extension WebSocketHandler {
    /// Nothing to do.
    public func opened(_ socket: WebSocket) {}

    /// Fails the socket with 1003: this side speaks text.
    public func received(binary: [UInt8], from socket: WebSocket) {
        socket.close(code: 1003, reason: "binary messages are not understood")
    }

    /// Nothing to do.
    public func receivedPong(_ payload: [UInt8], from socket: WebSocket) {}

    /// Nothing to do.
    public func receivedPart(from socket: WebSocket) {}

    /// Nothing to do.
    public func drained(_ socket: WebSocket) {}
}
