import ReelNet

/// Sends back what it is sent: for suites that test a WebSocket, and nothing else.
final class EchoSocket: WebSocketHandler {
    /// The largest message.
    static let messageBytes = 64 << 20

    func received(text: [UInt8], from socket: WebSocket) {
        socket.send(text: text)
        yield(socket)
    }

    func received(binary: [UInt8], from socket: WebSocket) {
        socket.send(binary: binary)
        yield(socket)
    }

    /// Who does not read his echoes is not read either.
    private func yield(_ socket: WebSocket) {
        if socket.pendingBytes > Self.messageBytes { socket.pauseReading() }
    }

    func drained(_ socket: WebSocket) { socket.resumeReading() }
    func closed(_ socket: WebSocket, code: UInt16, reason: String) {}
}

@available(*, unavailable)
extension EchoSocket: Sendable {}
