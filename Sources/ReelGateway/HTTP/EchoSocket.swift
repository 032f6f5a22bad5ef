import ReelNet

/// Sends back each message that it receives. It is only for test suites of WebSocket implementations.
final class EchoSocket: WebSocketHandler {
    /// The maximum size of a message in bytes.
    static let messageBytes = 64 << 20

    func received(text: [UInt8], from socket: WebSocket) {
        socket.send(text: text)
        yield(socket)
    }

    func received(binary: [UInt8], from socket: WebSocket) {
        socket.send(binary: binary)
        yield(socket)
    }

    /// Stops reading from a client that does not read its echoes.
    private func yield(_ socket: WebSocket) {
        if socket.pendingBytes > Self.messageBytes { socket.pauseReading() }
    }

    func drained(_ socket: WebSocket) { socket.resumeReading() }
    func closed(_ socket: WebSocket, code: UInt16, reason: String) {}
}

@available(*, unavailable)
extension EchoSocket: Sendable {}
