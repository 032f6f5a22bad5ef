import ReelCore
import ReelNet
import ReelNode

/// One connection of a client. It does what its session decides. On its loop only.
final class SocketClient: Subscriber {
    let number: Int
    let gateway: GatewayLoop
    private var session: Session
    /// The payload that the answer to a ping must carry; nil: all pings were answered. A client cannot know it before
    /// it has read the ping.
    private var awaitedPong: UInt32?
    /// The bytes that were written before the first unanswered ping, and before the last answered one.
    private var (bytesAtPing, bytesAnswered) = (0, 0)
    /// The client's rights; nil until its token has arrived.
    var access: Access?
    private var socket: (any ClientSocket)?
    /// The unit of this connection among the connections of its subject.
    var place: PayerShares.Unit?
    /// The subscribes that wait for their position, with a ticket each. A newer subscribe or an unsubscribe makes an
    /// older one void.
    var subscribing: [StreamName: Int] = [:]
    /// The number of subscribes that wait until their position is read, including void ones.
    var waits = 0
    var filterBytes = 0
    /// The client's address in the form of `SocketAddress.origin`.
    var origin: UInt64 = 0
    /// The limits of its subscriptions that catch up.
    let reads = ReadAccount()
    /// The readers to call once the client has read more.
    private var waitingForRoom: [any EventReader] = []
    /// The fetches that wait for their answer; nil: the client has fetched nothing yet.
    private var fetchQueue: FetchQueue?
    /// The edition of `Neighbours` that the client has heard of; nil: it accepts no `nodes` frames.
    var neighboursTold: Int32?
    /// True while a large frame of the client is parsed, or waits for that.
    private var isParsing = false
    /// True while the streams of a `subscribe` are handled in turns. The socket is held meanwhile.
    private var isSubscribing = false

    /// The largest frame before `welcome`, in bytes, compressed or not.
    static let helloBytes = 16 << 10

    init(_ gateway: GatewayLoop, access: Access?) {
        self.access = access
        number = gateway.nextNumber()
        self.gateway = gateway
        session = Session(gateway.context.settings, nowMs: gateway.nowMs)
    }

    var settings: GatewaySettings { gateway.context.settings }

    var isClosed: Bool { socket?.isClosed ?? true }

    /// Sets the largest frame that the client may send from now on.
    func takeFrames(of bytes: Int) { socket?.maxMessage = bytes }

    /// The number of bytes that wait to be sent to the client.
    var pendingBytes: Int { socket?.pendingBytes ?? 0 }

    // MARK: Sending

    /// Sends an answer. A client that does not even read its answers is disconnected.
    func send(_ body: ServerFrame.Body, ref: [UInt8]?) {
        send(WebSocketFrame.text(ServerFrame(body, ref: ref).encoded()))
    }

    /// Sends a frame. Closes the connection if too many bytes are unread.
    func send(_ frame: WebSocketFrame) {
        guard let socket, !socket.isClosed else { return }
        guard socket.pendingBytes <= 2 * settings.sendQueueBytes else {
            session.ends(.unread)
            return socket.close(code: 1013, reason: "answers are not read")
        }
        socket.send(frame)
    }

    /// Pushes a frame with live events. Returns false if the client does not keep up.
    func push(_ frame: WebSocketFrame, now: Bool) -> Bool {
        guard let socket, socket.pendingBytes + frame.bytes.count <= settings.sendQueueBytes else { return false }
        if now { socket.sendNow(frame) } else { socket.send(frame) }
        return true
    }

    /// True if more may be sent now of data that can wait, such as old events.
    var hasRoom: Bool { socket.map { !$0.isClosed && $0.pendingBytes <= settings.paceBytes } ?? false }

    /// Lets a reader go on once there is room, but not after the connection has closed.
    func wait(_ reader: any EventReader) { waitingForRoom.append(reader) }

    /// Sends an error and counts it.
    func tell(_ failure: ServerFrame.Failure, ref: [UInt8]?) {
        gateway.context.meters.failed(failure.error.code)
        send(.error(failure), ref: ref)
    }

    /// Sends an error about a frame. Closes the connection after too many errors that the client has caused.
    func refuse(_ failure: ServerFrame.Failure, ref: [UInt8]?) {
        perform(session.refused(failure.error), failure, ref)
    }

    /// Refuses a request that is right in itself because the client lacks a right or has reached a limit. It does not
    /// count as an error of the client, because a client with many streams may be refused the same for each of them.
    func decline(_ error: ReelError, _ stream: StreamName, ref: [UInt8]?) {
        tell(ServerFrame.Failure(error, stream: stream), ref: ref)
    }

    /// Sends the reason why the client is not let in, or not any longer, and closes the connection.
    func refuseEntry(_ error: ReelError, ref: [UInt8]?) {
        audit(error, "hello")
        perform(session.refusedEntry(error), ServerFrame.Failure(error), ref)
    }

    /// Writes an audit line if the error's code says that the client lacks a token or a right. `frame` is the type of
    /// the client's request.
    func audit(_ error: ReelError, _ frame: StaticString) {
        let client = (socket as? WebSocket)?.client
        gateway.requests?.audit(error, "/v1/socket \(frame)", client, subject: access?.subject)
    }

    private func perform(_ action: Session.Action, _ failure: ServerFrame.Failure, _ ref: [UInt8]?) {
        switch action {
        case .refuse: tell(failure, ref: ref)
        case .refuseAndClose(_, let code):
            tell(failure, ref: ref)
            socket?.close(code: code, reason: failure.error.message)
        case .welcome, .handle, .ignore: break
        }
    }

    // MARK: Time

    func tick(nowMs: Int64) {
        guard let socket, !socket.isClosed else { return }
        // While a frame waits or is handled, the socket is not read, so its pongs do not arrive.
        if isParsing || isSubscribing { heard() }
        if let access, access.hasExpired(nowMs: gateway.loop.wallMs) {
            return refuseEntry(.tokenExpired, ref: nil)
        }
        guard keepsPace(socket, nowMs) else {
            session.ends(.slow)
            // A close frame would wait after the unread bytes.
            return socket.reset()
        }
        let action = session.tick(
            nowMs: nowMs,
            awaitsAnswer: gateway.publishing.ledger.awaitsAnswer(number),
            unansweredBytes: socket.writtenBytes - bytesAnswered,
            partBytes: socket.partBytes
        )
        switch action {
        case .nothing: break
        case .ping: ping(socket)
        case .close(let error, let code):
            tell(ServerFrame.Failure(error), ref: nil)
            socket.close(code: code, reason: error.message)
        case .leave: socket.close(code: 1012, reason: "this node ends")
        }
    }

    /// Returns false if the client does not read the bytes that wait for it.
    private func keepsPace(_ socket: any ClientSocket, _ nowMs: Int64) -> Bool {
        switch session.look(nowMs: nowMs, bytesWait: socket.pendingBytes > 0) {
        case .no: return true
        case .first:
            _ = socket.checkReadingPace()
            return true
        case .next:
            switch socket.checkReadingPace() {
            case .nothingWaited: return true
            case .reads:
                heard()
                return true
            case .tooSlow: return false
            }
        }
    }

    /// Sends a ping. The payload stays the same until it is answered, because a slow reader may answer the first ping
    /// when the second one is sent.
    private func ping(_ socket: any ClientSocket) {
        if awaitedPong == nil { bytesAtPing = socket.writtenBytes }
        let payload = awaitedPong ?? UInt32.random(in: .min ... .max)
        awaitedPong = payload
        socket.ping(withUnsafeBytes(of: payload) { Array($0) })
    }

    /// Called with the payload of a pong. A pong without a matching ping does not prove that the client reads.
    func received(pong payload: [UInt8]) {
        guard let awaitedPong, payload == withUnsafeBytes(of: awaitedPong, { Array($0) }) else { return }
        self.awaitedPong = nil
        bytesAnswered = bytesAtPing
        heard()
    }

    /// Asks the client to connect to another node. The connection closes after `afterMs` milliseconds; `nodes` has the
    /// addresses of other gateways.
    func askToLeave(afterMs: Int64, nodes: [String]) {
        session.askToLeave(atMs: gateway.nowMs + afterMs)
        if session.isOpen { send(.goaway(afterMs: afterMs, nodes: nodes), ref: nil) }
    }

    // MARK: Frames

    private func handle(_ frame: ClientFrame, checked: [Result<PublishLedger.Offer, ReelError>]?) {
        guard let access else { return }
        switch frame.body {
        case .hello: break
        case .renew(let token): renew(token, access, ref: frame.ref)
        case .subscribe(let subscribe): subscribeIfAllowed(subscribe, ref: frame.ref)
        case .subscribeAll(let subscribes): subscribeInTurns(subscribes[...], ref: frame.ref)
        case .unsubscribe(let stream):
            forgetSubscribe(stream)
            gateway.fanOut.remove(self, stream)
            send(.unsubscribed(stream), ref: frame.ref)
        case .fetch(let fetch):
            if let error = access.refusalToRead(fetch.stream) {
                audit(error, "fetch")
                return decline(error, fetch.stream, ref: frame.ref)
            }
            let queue = fetchQueue ?? FetchQueue(of: self, first: fetch.stream)
            fetchQueue = queue
            queue.add(fetch, ref: frame.ref)
        case .publish(let publish):
            // The token may have expired since the last tick.
            if access.hasExpired(nowMs: gateway.loop.wallMs) { return refuseEntry(.tokenExpired, ref: frame.ref) }
            if let refusal = access.refusalToPublish(publish.stream) { audit(refusal, "publish") }
            gateway.publishing.publish(publish, checked: checked, with: access, from: number, origin, ref: frame.ref) {
                error in
                refuse(ServerFrame.Failure(error, stream: publish.stream), ref: frame.ref)
            }
        }
    }

    /// Subscribes to the streams of one frame. Each takes a turn of its own, so that a frame with many streams does not
    /// delay other clients. The client's next frame is handled after the last stream.
    private func subscribeInTurns(_ subscribes: ArraySlice<ClientFrame.Subscribe>, ref: [UInt8]?) {
        isSubscribing = true
        socket?.hold()
        subscribeNext(of: subscribes, ref: ref)
    }

    private func subscribeNext(of subscribes: ArraySlice<ClientFrame.Subscribe>, ref: [UInt8]?) {
        gateway.reads.turns.add { [self] in
            guard let socket, !socket.isClosed, let subscribe = subscribes.first else { return .nothing }
            subscribeIfAllowed(subscribe, ref: ref)
            let rest = subscribes.dropFirst()
            if rest.isEmpty {
                isSubscribing = false
                socket.release()
            } else {
                subscribeNext(of: rest, ref: ref)
            }
            return .large
        }
    }

    private func subscribeIfAllowed(_ subscribe: ClientFrame.Subscribe, ref: [UInt8]?) {
        guard let access else { return }
        if let error = access.refusalToRead(subscribe.stream) {
            audit(error, "subscribe")
            return decline(error, subscribe.stream, ref: ref)
        }
        self.subscribe(subscribe, ref: ref)
    }

    /// Answers `hello` and `renew`.
    func sayWelcome(ref: [UInt8]?) {
        send(.welcome(welcome), ref: ref)
        if neighboursTold != nil { neighboursTold = gateway.neighbours.edition }
    }

    private var welcome: ServerFrame.Welcome {
        ServerFrame.Welcome(
            node: gateway.context.nodeID,
            epoch: gateway.context.epoch,
            log: gateway.health.logState.rawValue,
            number: gateway.context.number,
            deployment: gateway.context.deployment,
            partitions: gateway.context.partitions,
            limits: ServerFrame.Limits(
                frame: settings.frameBytes,
                event: settings.eventBytes,
                batch: settings.batch,
                subscriptions: settings.subscriptions,
                subscribe: ClientFrame.subscribeStreams,
                fetch: Int(settings.fetchSeqs)
            ),
            pingS: Int(settings.pingMs / 1_000),
            tokenS: access?.grant.map { Int(max(0, $0.expiresAt - gateway.loop.wallMs / 1_000)) },
            nodes: gateway.neighbours.named
        )
    }

    /// True if the client has to hear of the other gateways now. A client with many waiting bytes hears of them later.
    func awaits(_ neighbours: Neighbours) -> Bool {
        guard let neighboursTold, neighbours.isNews(to: number, told: neighboursTold) else { return false }
        return session.isOpen && hasRoom
    }

    /// Sends `frame`, which names the present gateways of `neighbours`.
    func hears(of neighbours: Neighbours, by frame: WebSocketFrame) {
        neighboursTold = neighbours.edition
        send(frame)
    }
}

@available(*, unavailable)
extension SocketClient: Sendable {}

// Calls from the client's socket.
extension SocketClient {
    func opened(on socket: any ClientSocket) {
        self.socket = socket
        origin = socket.peerOrigin
        gateway.opened(self)
    }

    func received(text: [UInt8]) {
        heard()
        received(Self.parse(text, eventsMax: settings.batch))
    }

    /// Parses a large frame, and checks and stamps its events, on another thread. Before `welcome` no frame is large.
    private func received(large text: [UInt8], from socket: WebSocket, with access: Access) {
        heard()
        isParsing = true
        gateway.largeInput.read(messageOf: socket, of: Payer(access, origin)) { [gateway, settings] in
            let stamps = gateway.publishing.stamps(for: access)
            return {
                let frame = Self.parse(text, eventsMax: settings.batch)
                guard case .success(let sent) = frame, case .publish(let publish) = sent.body else {
                    return (frame, nil)
                }
                var intake = EventIntake(limit: settings.eventBytes)
                return (frame, intake.offers(publish, stamps.stamp(for: publish.stream)))
            }
        } then: { [self] in
            parsed($0, checked: $1)
        }
    }

    private func parsed(_ frame: Result<ClientFrame, FrameError>, checked: [Result<PublishLedger.Offer, ReelError>]?) {
        isParsing = false
        received(frame, checked: checked)
    }

    private static func parse(_ text: [UInt8], eventsMax: Int) -> Result<ClientFrame, FrameError> {
        Result { () throws(FrameError) in
            try text.withUnsafeBufferPointer { (bytes) throws(FrameError) in
                try ClientFrame(Bytes(bytes), eventsMax: eventsMax)
            }
        }
    }

    private func received(
        _ frame: Result<ClientFrame, FrameError>,
        checked: [Result<PublishLedger.Offer, ReelError>]? = nil
    ) {
        gateway.context.meters.framesIn.add()
        switch session.received(frame) {
        case .welcome: if let hello = try? frame.get() { enter(hello) }
        case .handle(let frame): handle(frame, checked: checked)
        case .ignore: break
        case .refuse(let error):
            perform(.refuse(error), Self.failure(error, frame), Self.ref(frame))
        case .refuseAndClose(let error, let code):
            perform(.refuseAndClose(error, code: code), Self.failure(error, frame), Self.ref(frame))
        }
    }

    private static func failure(
        _ error: ReelError,
        _ frame: Result<ClientFrame, FrameError>
    ) -> ServerFrame.Failure {
        guard case .failure(let failure) = frame else { return ServerFrame.Failure(error) }
        return ServerFrame.Failure(error, stream: failure.stream)
    }

    private static func ref(_ frame: Result<ClientFrame, FrameError>) -> [UInt8]? {
        switch frame {
        case .success(let frame): frame.ref
        case .failure(let failure): failure.ref
        }
    }

    private func heard() {
        session.heard(nowMs: gateway.nowMs)
    }

    func drained() {
        guard !waitingForRoom.isEmpty else { return }
        let readers = waitingForRoom
        waitingForRoom = []
        for reader in readers { gateway.reads.roomFreed(reader) }
    }

    /// Called when the connection is gone. `code` is the close code of the WebSocket, whichever side has sent it.
    func closed(code: UInt16 = 1006) {
        let isFraming = [1002, 1003, 1007, 1009].contains(code)
        gateway.context.meters.closed(session.end == .client && isFraming ? .framing : session.end)
        self.socket = nil
        place = nil
        (waitingForRoom, fetchQueue) = ([], nil)
        subscribing = [:]
        gateway.closed(self)
    }
}

extension SocketClient: WebSocketHandler {
    func opened(_ socket: WebSocket) { opened(on: socket) }
    func received(text: [UInt8], from socket: WebSocket) {
        if text.count > LargeInput.smallBytes, let access {
            received(large: text, from: socket, with: access)
        } else {
            received(text: text)
        }
    }
    func receivedPong(_ payload: [UInt8], from socket: WebSocket) { received(pong: payload) }
    func drained(_ socket: WebSocket) { drained() }
    func closed(_ socket: WebSocket, code: UInt16, reason: String) { closed(code: code) }
}
