public import ReelNet
import Synchronization

/// Ends a node in good order: the others are told, clients are sent away, what is in flight gets its answer, and once
/// all have gone or the limit has passed, those who wait are told. A second request ends it at once.
public final class GracefulShutdown: Sendable {
    private struct State {
        var drain: Drain
        var isRequested = false
        var hasEnded = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    /// How often is looked whether all have gone.
    private static let look = Duration.milliseconds(50)

    let loop: EventLoop
    private let settings: NodeSettings
    private let logger: Logger
    private let state: Mutex<State>
    private let leave: @Sendable () -> Void
    private let askToLeave: @Sendable (_ withinMs: Int64) -> Void
    private let connections: @Sendable () -> Int

    /// `leave` tells the others, once, when somebody asks the node to end; `askToLeave` stops new work and sends the
    /// clients away; `connections` says how many are left. All are called on the loop.
    public init(
        on loop: EventLoop,
        settings: NodeSettings,
        logger: Logger,
        leave: @escaping @Sendable () -> Void,
        askToLeave: @escaping @Sendable (_ withinMs: Int64) -> Void,
        connections: @escaping @Sendable () -> Int
    ) {
        self.loop = loop
        self.settings = settings
        self.logger = logger
        self.leave = leave
        self.askToLeave = askToLeave
        self.connections = connections
        state = Mutex(State(drain: Drain(spreadMs: settings.drainSpreadMs, limitMs: settings.drainLimitMs)))
    }

    /// Begins to end, or ends at once what has begun to. From any thread.
    public func begin() {
        loop.execute { [self] in
            let nowMs = Int64(clamping: loop.now)
            let (action, isFirst) = state.withLock { state in
                defer { state.isRequested = true }
                return (state.drain.requested(nowMs: nowMs), !state.isRequested)
            }
            // A node that begins anew has not left.
            if isFirst { leave() }
            perform(action)
        }
    }

    /// Whether somebody has asked for it.
    public var isRequested: Bool { state.withLock { $0.isRequested } }

    /// Whether all clients have left, or were cut off.
    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    /// Sends the clients away within so long, because the node is to begin anew; nothing if it ends already. On the
    /// loop.
    func restartForEpoch(withinMs: Int64) {
        let nowMs = Int64(clamping: loop.now)
        perform(state.withLock { $0.drain.restartForEpoch(nowMs: nowMs, spreadMs: withinMs) })
    }

    /// Returns once the node has ended.
    public func wait() async {
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                if !state.hasEnded { state.waiting.append(continuation) }
                return state.hasEnded
            }
            if hasEnded { continuation.resume() }
        }
    }

    private func perform(_ action: Drain.Action) {
        switch action {
        case .wait: break
        case .askToLeave(let withinMs):
            logger.info("drain started", ["within_ms": "\(withinMs)"])
            askToLeave(withinMs)
            loop.timer(after: Self.look, every: Self.look) { [self] in
                let (nowMs, connections) = (Int64(clamping: loop.now), connections())
                perform(state.withLock { $0.drain.tick(nowMs: nowMs, connections: connections) })
            }
        case .end(let reason):
            logger.info("drain finished", ["reason": reason.rawValue])
            let waiting = state.withLock { state in
                state.hasEnded = true
                defer { state.waiting = [] }
                return state.waiting
            }
            for continuation in waiting { continuation.resume() }
        }
    }
}
