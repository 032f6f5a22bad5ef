public import ReelNet
import Synchronization

/// Ends a node gracefully: it tells the peers, tells the clients to leave, and answers the requests in flight. It ends
/// when all clients have left or the time limit has passed, and then resumes the callers of `wait`. A second request
/// ends the node at once.
public final class GracefulShutdown: Sendable {
    private struct State {
        var drain: Drain
        var isRequested = false
        var hasEnded = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    /// The interval of checks that all clients have left.
    private static let pollInterval = Duration.milliseconds(50)

    let loop: EventLoop
    private let settings: NodeSettings
    private let logger: Logger
    private let state: Mutex<State>
    private let leave: @Sendable () -> Void
    private let askToLeave: @Sendable (_ withinMs: Int64) -> Void
    private let connections: @Sendable () -> Int

    /// Makes a shutdown. All closures are called on the loop.
    ///
    /// - Parameters:
    ///   - loop: The loop of the node.
    ///   - settings: The settings of the node, with the time limits of the shutdown.
    ///   - logger: The logger of the node.
    ///   - leave: Tells the peers that the node leaves. Called once, at the first request to end.
    ///   - askToLeave: Stops new work and tells the clients to leave within `withinMs` milliseconds.
    ///   - connections: Returns the number of connections that are left.
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

    /// Starts the shutdown, or ends the node at once if this is the second request. From any thread.
    public func begin() {
        loop.execute { [self] in
            let nowMs = Int64(clamping: loop.now)
            let (action, isFirst) = state.withLock { state in
                defer { state.isRequested = true }
                return (state.drain.requested(nowMs: nowMs), !state.isRequested)
            }
            // A node that restarts for a new epoch has not left.
            if isFirst { leave() }
            perform(action)
        }
    }

    /// True if `begin` was called.
    public var isRequested: Bool { state.withLock { $0.isRequested } }

    /// True if all clients have left, or their connections were closed at the limit.
    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    /// Tells the clients to leave within `withinMs` milliseconds, because the node restarts for a new epoch. Has no
    /// effect if the node is ending already. On the loop.
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
            loop.timer(after: Self.pollInterval, every: Self.pollInterval) { [self] in
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
