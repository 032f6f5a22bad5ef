package import ReelClient
package import ReelCore
package import ReelNet

/// A node inside the device's process that takes almost no processor time: it serves prepared states, and events from
/// memory. Everything happens on its loop, which is the client's executor.
package final class ScriptedNode: SyncTransport, @unchecked Sendable {
    /// Returns the pieces of a state, one at each call; nil after the last one. Called on the loop.
    package typealias Pieces = () -> [UInt8]?
    /// Returns the state that a target names, at a head of the log; nil if the node has none. Called on the loop.
    package typealias States = @Sendable (_ target: String, _ head: Seq) -> Pieces?

    /// The treatment of events that a client publishes.
    package enum Publishing: Sendable {
        /// The node does not answer.
        case unanswered
        /// The node refuses each event for this reason.
        case refused(ReelError)
        /// The node appends each event. It calls the closure with the stream and the record before any client gets it.
        case appended(@Sendable (_ stream: StreamName, _ value: [UInt8]) -> Void)
    }

    /// The bytes that a piece of an answer has at most, as a read of a socket.
    package static let pieceBytes = 64 << 10

    package let loop: EventLoop
    private let epoch: Epoch
    private let publishing: Publishing
    private let states: States
    /// The last seq of the log.
    private var head: Seq
    /// The events after the states, in order.
    private var log: [(stream: StreamName, event: DeliveredEvent)] = []
    private var connections: [ScriptedConnection] = []
    /// The number of requests, and of pauses of at most `shortMs`, that have not ended.
    private var running = 0
    private static let shortMs: Int64 = 10
    /// The targets of all requests for states.
    private var targets: [String] = []

    /// Creates a node.
    ///
    /// - Parameters:
    ///   - epoch: the epoch of the log.
    ///   - head: the last seq of the log.
    ///   - publishing: the treatment of events that a client publishes.
    ///   - states: returns the states that the node serves.
    package init(
        epoch: Epoch,
        head: Seq,
        publishing: Publishing = .unanswered,
        states: @escaping States
    ) throws {
        loop = try EventLoop()
        (self.epoch, self.head, self.publishing, self.states) = (epoch, head, publishing, states)
    }

    deinit {
        loop.stop()
        loop.leave()
    }

    /// Returns the pieces of a state in memory.
    package static func pieces(of state: [UInt8]) -> Pieces {
        var rest = state[...]
        return {
            defer { rest = rest.dropFirst(pieceBytes) }
            return rest.isEmpty ? nil : Array(rest.prefix(pieceBytes))
        }
    }

    /// Appends an event to a stream, and sends it to the subscribers. `value` gets the seq of the event. From any
    /// thread.
    package func append(to stream: StreamName, _ value: @escaping @Sendable (Seq) -> [UInt8]) {
        loop.execute { [self] in
            add(value(head + 1), to: stream)
            push()
        }
    }

    /// True if no request and no short pause runs, such as the pauses between the steps of a client's upkeep.
    package var isQuiet: Bool {
        get async throws { try await loop.run { self.running == 0 } }
    }

    /// The targets of all requests for states so far, in order.
    package var requests: [String] {
        get async throws { try await loop.run { self.targets } }
    }

    private func add(_ value: [UInt8], to stream: StreamName) {
        head += 1
        log.append((stream, DeliveredEvent(seq: head, value: value)))
    }

    private func push() {
        for connection in connections { connection.push(head) }
    }

    // MARK: Transport

    package var executor: any SerialExecutor { loop }
    package var nowMs: Int64 { Int64(clamping: loop.now) }

    package func check(_ node: String) {}

    package func connect(
        to node: String,
        _ receive: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportConnection {
        let connection = ScriptedConnection(self, receive)
        loop.execute { [self] in
            connections.append(connection)
            receive(.opened)
        }
        return connection
    }

    package func get(
        from node: String,
        _ target: String,
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        let request = start()
        loop.execute { [self] in
            guard !request.isEnded else { return }
            if target.contains("/events?") {
                // The node tells no outcomes.
                request.cancel()
                receive(.head(status: 404, length: nil))
                receive(.body(Array(#"{"code":"not_found"}"#.utf8)))
                return receive(.end)
            }
            targets.append(target)
            guard let pieces = states(target, head) else {
                request.cancel()
                return receive(.failed("found \(target), which the node does not have"))
            }
            receive(.head(status: 200, length: nil))
            request.pieces = pieces
            send(pieceOf: request, receive)
        }
        return request
    }

    /// The node is of a build without POST requests.
    package func post(
        to node: String,
        _ target: String,
        json body: [UInt8],
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        loop.execute {
            receive(.head(status: 404, length: 0))
            receive(.end)
        }
        return ScriptedRequest()
    }

    /// Sends a piece of a state, and the next one in a later round of the loop.
    private func send(pieceOf request: ScriptedRequest, _ receive: @escaping @Sendable (TransportResponse) -> Void) {
        guard let pieces = request.pieces else { return }
        guard let piece = pieces() else {
            request.cancel()
            return receive(.end)
        }
        receive(.body(piece))
        loop.execute { self.send(pieceOf: request, receive) }
    }

    package func after(_ ms: Int64, _ body: @escaping @Sendable () -> Void) -> any TransportHandle {
        let request = ms <= Self.shortMs ? start() : ScriptedRequest()
        request.timer = loop.timer(after: .milliseconds(ms)) { [weak request] in
            request?.cancel()
            body()
        }
        return request
    }

    private func start() -> ScriptedRequest {
        running += 1
        return ScriptedRequest { self.running -= 1 }
    }

    package func execute(_ body: @escaping @Sendable () -> Void) {
        if loop.isCurrent { body() } else { loop.execute(body) }
    }

    package func onBatchEnd(_ body: @escaping @Sendable () -> Void) { loop.beforeFlush(body) }

    // MARK: Frames

    fileprivate func received(_ frame: ClientFrame, on connection: ScriptedConnection) {
        switch frame.body {
        case .hello, .renew: connection.say(welcome)
        case .subscribe(let subscribe):
            var after = head
            if case .after(let seq) = subscribe.position { after = seq }
            let answer = ServerFrame.Subscribed(
                stream: subscribe.stream,
                epoch: epoch,
                partition: 0,
                first: 0,
                head: head,
                after: after
            )
            connection.say(.subscribed(answer), ref: frame.ref)
            connection.proven[subscribe.stream] = after
            connection.push(head)
        case .subscribeAll(let subscribes):
            for subscribe in subscribes { received(ClientFrame(.subscribe(subscribe), ref: frame.ref), on: connection) }
        case .unsubscribe(let stream): connection.proven[stream] = nil
        case .publish(let publish): published(publish, frame.ref, connection)
        case .fetch: break
        }
    }

    private var welcome: ServerFrame.Body {
        let limits = ServerFrame.Limits(
            frame: 1 << 20,
            event: 256 << 10,
            batch: 256,
            subscriptions: 1_000,
            fetch: 100_000
        )
        return .welcome(
            .init(
                node: "scripted",
                epoch: epoch,
                number: 0,
                deployment: Deployment(1),
                partitions: 1,
                limits: limits,
                pingS: 20
            )
        )
    }

    private func published(_ publish: ClientFrame.Publish, _ ref: [UInt8]?, _ connection: ScriptedConnection) {
        if case .unanswered = publishing { return }
        var acks: [ServerFrame.Acked] = []
        for bytes in publish.events {
            var intake = EventIntake(limit: 256 << 10)
            var value: [UInt8] = []
            let stamp = EventIntake.Stamp(by: nil, atMs: 0, base: head)
            guard (try? bytes.withUnsafeBytes { try intake.take($0, stamp: stamp, into: &value) }) != nil else {
                continue
            }
            let (site, op) = (intake.event.site, intake.event.op)
            switch publishing {
            case .unanswered: break
            case .refused(let error):
                connection.say(.nack(.init(stream: publish.stream, site: site, op: op, error: error)), ref: ref)
            case .appended(let append):
                append(publish.stream, value)
                add(value, to: publish.stream)
                acks.append(.init(site: site, op: op, seq: head))
            }
        }
        guard !acks.isEmpty else { return }
        connection.say(.ack(.init(stream: publish.stream, epoch: epoch, acks: acks)))
        push()
    }

    fileprivate func events(of stream: StreamName, after: Seq) -> [DeliveredEvent] {
        // The log may be long, and the events are the last ones.
        let last = log.reversed().prefix { $0.event.seq > after }
        return last.reversed().filter { $0.stream == stream }.map(\.event)
    }

    fileprivate func ended(_ connection: ScriptedConnection) { connections.removeAll { $0 === connection } }
}

/// A connection with a scripted node.
private final class ScriptedConnection: TransportConnection, @unchecked Sendable {
    private let node: ScriptedNode
    private var receive: (@Sendable (TransportEvent) -> Void)?
    /// The last proven seq of each subscription.
    var proven: [StreamName: Seq] = [:]

    init(_ node: ScriptedNode, _ receive: @escaping @Sendable (TransportEvent) -> Void) {
        (self.node, self.receive) = (node, receive)
    }

    func send(_ text: [UInt8]) {
        node.loop.execute { [self] in
            guard receive != nil, let frame = text.withUnsafeBytes({ try? ClientFrame($0) }) else { return }
            node.received(frame, on: self)
        }
    }

    func ping(_ number: Int) { node.loop.execute { self.receive?(.pong(number)) } }

    func close() {
        receive = nil
        node.ended(self)
    }

    func say(_ body: ServerFrame.Body, ref: [UInt8]? = nil) {
        receive?(.text(ServerFrame(body, ref: ref).encoded()))
    }

    /// Sends what the subscriptions lack up to a seq.
    func push(_ head: Seq) {
        for (stream, after) in proven where after < head {
            proven[stream] = head
            let events = node.events(of: stream, after: after)
            say(.events(.init(stream: stream, from: after + 1, to: head, events: events)))
        }
    }
}

/// A request or a timer of a scripted node. Used on the loop only.
private final class ScriptedRequest: TransportHandle, @unchecked Sendable {
    var pieces: ScriptedNode.Pieces?
    var timer: LoopTimer?
    private(set) var isEnded = false
    private let ended: () -> Void

    init(_ ended: @escaping () -> Void = {}) {
        self.ended = ended
    }

    func cancel() {
        guard !isEnded else { return }
        isEnded = true
        pieces = nil
        timer?.cancel()
        timer = nil
        ended()
    }
}
