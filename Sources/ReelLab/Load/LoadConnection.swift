import ReelBase
import ReelClient
import ReelCore
import ReelNet

/// The callbacks of a load client's connection.
protocol LoadConnectionOwner: AnyObject {
    func welcomed(_ welcome: ServerFrame.Welcome, by url: String)
    func received(_ frame: ServerFrame)
    func received(_ frame: FrameCache.Frame)
    /// Called when the connection has ended, or could not be made. Another attempt follows.
    func lost(_ url: String, _ loss: ConnectionLoss)
}

/// The end of a connection, or of the attempt to make it.
struct ConnectionLoss {
    let code: UInt16
    let reason: String
    /// True if the gateway had sent `welcome`.
    let wasWelcome: Bool
    /// True if there is no gateway: no server listens, the name is not known, or another kind of server listens.
    let isNoGateway: Bool
}

/// A lasting connection: it reconnects to one gateway after the other, as a client's does.
final class LoadConnection: WebSocketHandler {
    private let loop: EventLoop
    private let gateways: LoadGateways
    private let frames: FrameCache
    private var failover: Failover
    /// The owner; nil after `close`.
    private var owner: (any LoadConnectionOwner)?
    private var attempt: WebSocketClient?
    private var socket: WebSocket?
    private var timer: LoopTimer?
    private var isWelcome = false
    /// The time after which the gateway that refuses this client allows it again; nil: it has named none.
    private var retryMs: Int64?
    private var isPinged = false
    private var isClosed = false
    private(set) var isResting = false
    private lazy var silence = Deadline(on: loop) { [weak self] in self?.silent() }

    /// The silence after which a connection is pinged. After the same time again it is given up.
    static let silence = Duration.seconds(2)

    init(
        _ owner: any LoadConnectionOwner,
        to gateways: LoadGateways,
        seed: UInt64,
        frames: FrameCache,
        on loop: EventLoop
    ) {
        self.owner = owner
        self.loop = loop
        self.gateways = gateways
        self.frames = frames
        failover = Failover(nodes: gateways.urls, seed: seed)
    }

    /// Connects, and reconnects when the connection is lost.
    func start() {
        connectNext()
    }

    /// Closes the connection, and does not reconnect.
    func close() {
        isClosed = true
        owner = nil
        timer?.cancel()
        silence.cancel()
        attempt?.cancel()
        socket?.close()
    }

    /// Aborts the connection, as a network failure does. Another one follows.
    func cut() {
        socket?.abort()
    }

    /// Goes offline for `duration`. `isOver` is called when that time has passed, even if no gateway can be reached.
    func rest(_ duration: Duration, _ isOver: @escaping () -> Void) {
        isResting = true
        timer?.cancel()
        attempt?.cancel()
        socket?.abort()
        loop.timer(after: duration) { [weak self] in
            guard let self, isResting else { return }
            isResting = false
            isOver()
            connectNext()
        }
    }

    func send(_ frame: ClientFrame) {
        socket?.send(text: frame.encoded())
    }

    private func connectNext() {
        guard !isClosed, !isResting, let next = failover.next(nowMs: MonotonicClock.nowMs()) else { return }
        let pause = max(0, next.atMs - MonotonicClock.nowMs())
        timer = loop.timer(after: .milliseconds(pause)) { [weak self] in self?.connect(next.node) }
    }

    private func connect(_ url: String) {
        timer = nil
        guard !isClosed, !isResting, var target = gateways.socket(url) else { return }
        target.timeout = .milliseconds(failover.attemptMs)
        attempt = WebSocketClient.connect(on: loop, to: target, handler: self) { [weak self] error in
            self?.over(code: 1006, reason: error.message, isNoGateway: Self.isNoGateway(error))
        }
    }

    private static func isNoGateway(_ error: NetError) -> Bool {
        switch error.code {
        case .refused, .nameNotFound, .badAddress: true
        // A proxy whose gateways have not started yet answers 503.
        case .violation: error.httpStatus == 404
        default: false
        }
    }

    private func over(code: UInt16, reason: String, isNoGateway: Bool = false) {
        attempt = nil
        socket = nil
        silence.clear()
        let wasWelcome = isWelcome
        isWelcome = false
        let url = failover.current ?? ""
        failover.lost(nowMs: MonotonicClock.nowMs(), retryMs: retryMs)
        retryMs = nil
        owner?.lost(
            url,
            ConnectionLoss(code: code, reason: reason, wasWelcome: wasWelcome, isNoGateway: isNoGateway)
        )
        connectNext()
    }

    private func silent() {
        guard let socket else { return }
        if isPinged { return socket.abort() }
        isPinged = true
        socket.ping()
        silence.set(Self.silence)
    }

    private func heard() {
        isPinged = false
        silence.set(Self.silence)
    }

    // MARK: The socket

    func opened(_ socket: WebSocket) {
        attempt = nil
        guard !isClosed, !isResting else { return socket.abort() }
        self.socket = socket
        failover.answered()
        heard()
        send(ClientFrame(.hello(ClientFrame.Hello(client: "reel-load/1", token: gateways.token))))
    }

    func receivedPong(_ payload: [UInt8], from socket: WebSocket) { heard() }

    func received(text: [UInt8], from socket: WebSocket) {
        heard()
        if let frame = frames.frame(text) { return owner?.received(frame) ?? () }
        let frame: ServerFrame
        do throws(ReelError) {
            frame = try text.withUnsafeBufferPointer { (text) throws(ReelError) in try ServerFrame(Bytes(text)) }
        } catch {
            return socket.close(code: 1002, reason: "a frame that cannot be read: \(error.message)")
        }
        switch frame.body {
        case .welcome(let welcome):
            isWelcome = true
            let url = failover.current ?? ""
            failover.welcomed(nowMs: MonotonicClock.nowMs())
            owner?.welcomed(welcome, by: url)
        case .events(let events): owner?.received(frames.add(text, events, ref: frame.ref))
        case .goaway(let afterMs, let nodes):
            let moment = failover.leaves(afterMs: afterMs, nodes: nodes, nowMs: MonotonicClock.nowMs())
            timer = loop.timer(after: .milliseconds(max(0, moment - MonotonicClock.nowMs()))) {
                [weak self, weak socket] in
                guard let socket, self?.socket === socket else { return }
                socket.close()
            }
        case .error(let failure) where !isWelcome:
            retryMs = failure.error.retryMs
            owner?.received(frame)
        default: owner?.received(frame)
        }
    }

    func closed(_ socket: WebSocket, code: UInt16, reason: String) {
        over(code: code, reason: reason)
    }
}
