import ReelCore
import ReelNet

/// One connection to a gateway that follows one stream from a position on, until it ends.
final class TailSocket: WebSocketHandler {
    /// Why it ended.
    enum End: Sendable {
        /// The connection is gone, or the gateway wants it elsewhere: any gateway may go on.
        case lost(String)
        /// The gateway refuses to go on; another would too.
        case refused(CommandError)
    }

    /// What became of a connection.
    struct Outcome: Sendable {
        /// Where it came to.
        var position: Position
        /// Why no further.
        var end: End
        /// It was let in.
        var wasWelcome = false
        /// The other nodes, as this one named them last.
        var nodes: [String] = []
    }

    /// Where a tail is: what follows `seq` is still to come. Without a seq it begins at the end.
    struct Position: Sendable {
        var epoch: Epoch?
        var seq: Seq?
        /// Whether the epoch was asked for, so that no other one will do.
        var isPinned = false
        /// Whether a gateway has ever answered for it.
        var isKnown = false
        /// The number of the log that it is in, or goes on in: a gateway with a lower one is behind.
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
    /// The number of the gateway's log; nil: it has not said welcome.
    private var number: Int?
    private var nodes: [String] = []
    /// The partition of the stream; nil: the gateway has not answered the subscription.
    private var partition: Int?
    private var wasHeard = true

    /// A connection on which nothing came for two of these is dead.
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

    /// Follows the stream on a gateway, with each event's outcome if `hasOutcomes`. `deliver` is called on the loop for
    /// each event, once and in order, and `began`
    /// before them, with the first seq, where no gateway has answered for the position yet.
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
            // Another gateway may be sound.
            end(.lost("the gateway sent a frame that is none: \(error.message)"))
            socket.close()
        } catch {
            end(.refused(CommandError(error)))
            socket.close()
        }
    }

    /// What another gateway may do is no reason to give up, and another epoch is none for who follows a stream.
    private func end(for failure: ServerFrame.Failure) -> End {
        let error = failure.error
        switch error.code {
        case .nodeBehind, .logUnavailable, .overloaded, .rateLimited: return .lost(error.message)
        case .epochChanged where !position.isPinned:
            (position.epoch, position.seq, position.number) = (nil, Seq.none, number ?? 0)
            return .lost("\(error.message); goes on behind the state that the new epoch begins with")
        case .truncated where position.seq == Seq.none:
            guard let first = failure.first, first > 0 else { return .refused(CommandError(error)) }
            position.seq = first - 1
            return .lost("\(error.message); begins there")
        default: return .refused(CommandError(error))
        }
    }

    func closed(_ socket: WebSocket, code: UInt16, reason: String) {
        // The code of a connection that has ended without a word.
        let said = code == 1006 ? "" : " with \(code)\(reason.isEmpty ? "" : ", " + reason)"
        end(.lost("the connection was closed\(said)"))
    }

    private func taken(_ frame: ServerFrame, _ socket: WebSocket) throws(CommandError) -> End? {
        switch frame.body {
        case .welcome(let welcome):
            guard welcome.number >= position.number else {
                return .lost("this gateway has not gone over to the present epoch yet")
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
                return .lost("events of \(events.stream) from seq \(events.from) on came where seq \(seq + 1) was due")
            }
            var last = events.from - 1
            for event in events.events {
                guard event.seq > last, event.seq <= events.to else {
                    return .lost("the event \(event.seq) came behind \(last), in a range up to seq \(events.to)")
                }
                last = event.seq
            }
            for event in events.events where event.seq > seq { try deliver(event) }
            position.seq = max(seq, events.to)
        case .upto(let partition, let seq) where partition == self.partition:
            position.seq = max(position.seq ?? .none, seq)
        case .lagged: return .lost("this reader was too slow and begins again")
        case .nodes(let others): nodes = others
        case .goaway(_, let others):
            if !others.isEmpty { nodes = others }
            return .lost("the gateway goes away")
        case .error(let failure): return end(for: failure)
        case .unsubscribed, .ack, .nack, .upto: break
        }
        return nil
    }
}
