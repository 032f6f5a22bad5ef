import ReelCore
import ReelNet

/// A connection to a gateway that follows one stream from a position until the connection ends. On its loop.
final class TailSocket: WebSocketHandler {
    /// The reason why the connection ended.
    enum End: Sendable {
        /// The connection was lost, or the gateway asked the client to leave: another gateway can continue.
        case lost(String)
        /// The gateway refuses the subscription; every other gateway would refuse it, too.
        case refused(CommandError)
    }

    /// The result of a connection.
    struct Outcome: Sendable {
        /// The position at its end.
        var position: Position
        /// The reason for its end.
        var end: End
        /// True if the gateway has accepted the client.
        var wasWelcome = false
        /// The other nodes, as the gateway named them last.
        var nodes: [String] = []
    }

    /// The position of a tail: the events after `seq` are still to come. Without a seq, it starts at the end.
    struct Position: Sendable {
        var epoch: Epoch?
        var seq: Seq?
        /// True if the user named the epoch, so that the tail does not continue in another one.
        var isPinned = false
        /// True if a gateway has answered a subscription at this position.
        var isKnown = false
        /// The number of the position's log, or of the log in which it continues. A gateway with a lower number lags.
        var number = 0
    }

    private let stream: StreamName
    private var position: Position
    private let hasOutcomes: Bool
    private let token: String?
    private let began: (Seq) -> Void
    private let deliver: (DeliveredEvent) throws(CommandError) -> Void
    private var finish: ((Outcome) -> Void)?
    private var pulse: LoopTimer?
    /// The number of the gateway's log; nil before its `welcome`.
    private var number: Int?
    private var nodes: [String] = []
    /// The partition of the stream; nil before the answer to the subscription.
    private var partition: Int?
    /// True if something was received since the last ping.
    private var wasHeard = true

    /// The interval of pings. A connection without input for two intervals is dead.
    private static let pulse = Duration.seconds(15)

    private init(
        _ stream: StreamName,
        from position: Position,
        hasOutcomes: Bool,
        token: String?,
        began: @escaping (Seq) -> Void,
        deliver: @escaping (DeliveredEvent) throws(CommandError) -> Void,
        finish: @escaping (Outcome) -> Void
    ) {
        self.stream = stream
        self.position = position
        self.hasOutcomes = hasOutcomes
        self.token = token
        self.began = began
        self.deliver = deliver
        self.finish = finish
    }

    /// Follows the stream on a gateway until the connection ends.
    ///
    /// - Parameters:
    ///   - stream: the stream.
    ///   - position: the position to start from.
    ///   - hasOutcomes: true to get the outcome with each event.
    ///   - address: the gateway.
    ///   - loop: the loop of the connection.
    ///   - began: called on the loop with the first seq, before the first event. Only called if no gateway has answered
    ///     for the position before.
    ///   - deliver: called on the loop for each event, once and in order.
    /// - Returns: the position at the end, and the reason for the end.
    static func follow(
        _ stream: StreamName,
        from position: Position,
        hasOutcomes: Bool = false,
        on address: NodeAddress,
        loop: EventLoop,
        began: @escaping @Sendable (Seq) -> Void,
        deliver: @escaping @Sendable (DeliveredEvent) throws(CommandError) -> Void
    ) async -> Outcome {
        await withCheckedContinuation { continuation in
            let isTaken = loop.execute {
                let socket = TailSocket(
                    stream,
                    from: position,
                    hasOutcomes: hasOutcomes,
                    token: address.token,
                    began: began,
                    deliver: deliver
                ) {
                    continuation.resume(returning: $0)
                }
                var target = WebSocketTarget(
                    host: address.host,
                    port: address.port,
                    path: "/v1/socket",
                    subprotocols: ["reel.v1"]
                )
                target.tls = address.tls
                WebSocketClient.connect(on: loop, to: target, handler: socket) { socket.end(.lost($0.message)) }
            }
            guard !isTaken else { return }
            continuation.resume(returning: Outcome(position: position, end: .lost("the event loop has stopped")))
        }
    }

    private func end(_ end: End) {
        let finish = finish
        self.finish = nil
        pulse?.cancel()
        pulse = nil
        finish?(Outcome(position: position, end: end, wasWelcome: number != nil, nodes: nodes))
    }

    // MARK: The socket

    func opened(_ socket: WebSocket) {
        pulse = socket.loop.timer(after: Self.pulse, every: Self.pulse) { [self] in
            guard wasHeard else { return socket.abort() }
            wasHeard = false
            socket.ping()
        }
        let hello = ClientFrame.Hello(client: "reel/\(Version.number)", token: token, takesNodes: true)
        socket.send(text: ClientFrame(.hello(hello)).encoded())
    }

    func receivedPong(_ payload: [UInt8], from socket: WebSocket) {
        wasHeard = true
    }

    func received(text: [UInt8], from socket: WebSocket) {
        wasHeard = true
        do {
            let frame = try text.withUnsafeBufferPointer { (text) throws(ReelError) in try ServerFrame(Bytes(text)) }
            if let end = try taken(frame, socket) {
                self.end(end)
                socket.close()
            }
        } catch let error as ReelError {
            // Another gateway can work.
            end(.lost("the gateway sent a bad frame: \(error.message)"))
            socket.close()
        } catch {
            end(.refused(CommandError(error)))
            socket.close()
        }
    }

    /// Returns how an error ends the connection. The tail continues after errors that another gateway may not have, and
    /// after a change of the epoch unless it is pinned.
    private func end(for failure: ServerFrame.Failure) -> End {
        let error = failure.error
        switch error.code {
        case .nodeBehind, .logUnavailable, .overloaded, .rateLimited: return .lost(error.message)
        case .epochChanged where !position.isPinned:
            (position.epoch, position.seq, position.number) = (nil, Seq.none, number ?? 0)
            return .lost("\(error.message); continuing after the seeds of the new epoch")
        case .truncated where position.seq == Seq.none:
            guard let first = failure.first, first > 0 else { return .refused(CommandError(error)) }
            position.seq = first - 1
            return .lost("\(error.message); starting there")
        default: return .refused(CommandError(error))
        }
    }

    func closed(_ socket: WebSocket, code: UInt16, reason: String) {
        // 1006 is the code of a connection that has ended without a close frame (RFC 6455).
        let said = code == 1006 ? "" : " with \(code)\(reason.isEmpty ? "" : ", " + reason)"
        end(.lost("the connection was closed\(said)"))
    }

    private func taken(_ frame: ServerFrame, _ socket: WebSocket) throws(CommandError) -> End? {
        switch frame.body {
        case .welcome(let welcome):
            guard welcome.number >= position.number else {
                return .lost("this gateway has not changed to the current epoch yet")
            }
            (number, nodes) = (welcome.number, welcome.nodes)
            let epoch = position.epoch ?? welcome.epoch
            let subscribe = ClientFrame.Subscribe(
                stream: stream,
                position: position.seq.map { .after($0) } ?? .now,
                epoch: position.isPinned || position.seq.map { $0 >= 0 } == true ? epoch : nil,
                hasOutcomes: hasOutcomes
            )
            socket.send(text: ClientFrame(.subscribe(subscribe)).encoded())
        case .subscribed(let subscribed):
            if !position.isKnown { began(subscribed.after + 1) }
            (position.epoch, position.seq, position.isKnown) = (subscribed.epoch, subscribed.after, true)
            position.number = number ?? 0
            partition = subscribed.partition
        case .events(let events):
            let seq = position.seq ?? .none
            guard events.stream == stream, events.from <= seq + 1 else {
                return .lost("found events of \(events.stream) from seq \(events.from) on, expected seq \(seq + 1)")
            }
            var last = events.from - 1
            for event in events.events {
                guard event.seq > last, event.seq <= events.to else {
                    return .lost("found the event \(event.seq) after \(last), in a range up to seq \(events.to)")
                }
                last = event.seq
            }
            for event in events.events where event.seq > seq { try deliver(event) }
            position.seq = max(seq, events.to)
        case .upto(let partition, let seq) where partition == self.partition:
            position.seq = max(position.seq ?? .none, seq)
        case .lagged: return .lost("this reader was too slow and subscribes again")
        case .nodes(let others): nodes = others
        case .goaway(_, let others):
            if !others.isEmpty { nodes = others }
            return .lost("the gateway is leaving")
        case .error(let failure): return end(for: failure)
        case .unsubscribed, .ack, .nack, .upto: break
        }
        return nil
    }
}
