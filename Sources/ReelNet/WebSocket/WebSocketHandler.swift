/// The owner of WebSockets; one owner may have many. All calls are on the loop; there is none for a socket after its
/// `closed`.
public protocol WebSocketHandler: AnyObject {
    /// Called when the handshake is done: both sides may send messages.
    func opened(_ socket: WebSocket)
    /// Called with a complete text message, valid UTF-8.
    func received(text: [UInt8], from socket: WebSocket)
    /// Called with a complete binary message.
    func received(binary: [UInt8], from socket: WebSocket)
    /// Called with the payload of a pong. If the pong answers a ping, it is the payload of that ping.
    func receivedPong(_ payload: [UInt8], from socket: WebSocket)
    /// Called when bytes have arrived that do not complete a message.
    func receivedPart(from socket: WebSocket)
    /// Called when the kernel has taken all written bytes.
    func drained(_ socket: WebSocket)
    /// Called when the socket is gone.
    ///
    /// - Parameters:
    ///   - socket: The socket.
    ///   - code: The peer's close code (1005 if it gave none), the code of the violation for which this side closed, or
    ///     1006 if the connection broke.
    ///   - reason: The reason of the close frame.
    func closed(_ socket: WebSocket, code: UInt16, reason: String)
}

extension WebSocketHandler {
    /// Does nothing.
    public func opened(_ socket: WebSocket) {}

    /// Closes the socket with 1003: this side accepts text only.
    public func received(binary: [UInt8], from socket: WebSocket) {
        socket.close(code: 1003, reason: "binary messages are not understood")
    }

    /// Does nothing.
    public func receivedPong(_ payload: [UInt8], from socket: WebSocket) {}

    /// Does nothing.
    public func receivedPart(from socket: WebSocket) {}

    /// Does nothing.
    public func drained(_ socket: WebSocket) {}
}
