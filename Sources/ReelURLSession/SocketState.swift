internal import ReelClient

/// The progress of a WebSocket: what follows from each of its events.
struct SocketState {
    /// An event of the socket or of its owner.
    enum Input {
        /// The handshake is done.
        case opened(subprotocol: String?)
        /// A complete text message has arrived.
        case text(String)
        /// A complete binary message has arrived.
        case binary
        /// A ping was answered.
        case pong(Int)
        /// The node has taken this number of bytes.
        case sent(Int)
        /// No further message can be read. The node may have closed the socket, and then `closed` follows.
        case readFailed(String)
        /// The node has closed the socket.
        case closed(code: Int, reason: String)
        /// The socket has ended for another reason.
        case failed(String)
        /// The time that `startTimer` named has passed.
        case deadline
        /// The owner sends a text of this number of bytes.
        case send(Int)
        /// The owner sends a ping.
        case ping
        /// The owner closes the socket.
        case close
    }

    /// An action of the socket, in the order in which they are done.
    enum Output {
        /// Report this to the owner.
        case report(TransportEvent)
        /// Report the end to the owner, and forget the socket.
        case end(String)
        /// Read the next message.
        case read
        /// Send what the owner sends.
        case send
        /// Start the timer, in place of the former one.
        case startTimer(ms: Int64)
        /// Stop the timer.
        case stopTimer
        /// Close the socket with a code. The reason is for the node.
        case close(code: Int, reason: String)
    }

    private enum Phase {
        case opening
        case open
        /// Reading has failed, and the close code of the node is awaited.
        case closing(String)
        case over
    }

    static let subprotocol = "reel.v1"

    private let limits: TransportLimits
    private var phase = Phase.opening
    private var unsentBytes = 0
    private var pings = 0

    init(_ limits: TransportLimits) { self.limits = limits }

    /// Returns the actions that follow from an event.
    mutating func handle(_ input: Input) -> [Output] {
        switch (phase, input) {
        case (.over, _): []
        case (_, .close): end([.stopTimer, .close(code: 1000, reason: "")])
        case (_, .failed(let reason)): end([.stopTimer, .end(reason)])
        case (_, .closed(let code, let reason)): end([.stopTimer, .end("closed with \(code) \(reason)")])
        case (.opening, .opened(let chosen)): opened(chosen)
        case (.opening, .deadline):
            end([.close(code: 1001, reason: ""), .end("a WebSocket's handshake took more than \(limits.openMs) ms")])
        case (.opening, .readFailed(let reason)), (.open, .readFailed(let reason)): readFailed(reason)
        case (.opening, _): []
        case (.closing(let reason), .deadline): end([.close(code: 1001, reason: ""), .end(reason)])
        case (.closing, _): []
        case (.open, .text(let text)): received(text)
        case (.open, .binary): refuse(1003, "binary messages are not understood")
        case (.open, .pong(let number)): ponged(number)
        case (.open, .sent(let bytes)): sent(bytes)
        case (.open, .send(let bytes)): send(bytes)
        case (.open, .ping): ping()
        case (.open, .opened), (.open, .deadline): []
        }
    }

    private mutating func opened(_ chosen: String?) -> [Output] {
        // A node may choose no subprotocol.
        guard let chosen, chosen != Self.subprotocol, !chosen.isEmpty else {
            phase = .open
            return [.stopTimer, .report(.opened), .read]
        }
        return refuse(1002, "a WebSocket subprotocol that was not offered")
    }

    private mutating func readFailed(_ reason: String) -> [Output] {
        phase = .closing(reason)
        return [.startTimer(ms: limits.closeMs)]
    }

    private mutating func received(_ text: String) -> [Output] {
        let count = text.utf8.count
        guard count <= limits.messageBytes else {
            return refuse(1009, "a message of more than \(limits.messageBytes) bytes")
        }
        return [.report(.text(Array(text.utf8))), .read]
    }

    private mutating func ponged(_ number: Int) -> [Output] {
        pings -= 1
        return [.report(.pong(number))]
    }

    private mutating func sent(_ bytes: Int) -> [Output] {
        unsentBytes -= bytes
        return []
    }

    private mutating func send(_ bytes: Int) -> [Output] {
        guard bytes <= limits.unsentBytes - unsentBytes else {
            return refuse(1001, "the node does not take more than \(limits.unsentBytes) bytes")
        }
        unsentBytes += bytes
        return [.send]
    }

    private mutating func ping() -> [Output] {
        guard pings < limits.pings else { return [] }
        pings += 1
        return [.send]
    }

    private mutating func refuse(_ code: Int, _ reason: String) -> [Output] {
        end([.stopTimer, .close(code: code, reason: reason), .end("closed with \(code) \(reason)")])
    }

    private mutating func end(_ outputs: [Output]) -> [Output] {
        phase = .over
        return outputs
    }
}
