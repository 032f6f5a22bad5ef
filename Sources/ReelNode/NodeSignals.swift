import Glibc
import ReelNet
import Synchronization

/// The signals of a process that runs nodes, one after the other: none has its own effect between two of them.
///
/// SIGTERM and SIGINT end the present node in good order, and no other follows; where there is none at the moment, a
/// second one ends the process at once. A log that hangs does not keep the process: what has not closed soon after the
/// node has ended is left behind. At SIGHUP the files of certificate and keys are read again; a node that has none says
/// so and goes on.
public final class NodeSignals: Sendable {
    private struct State {
        var requests = 0
        var node: GracefulShutdown?
    }

    private let loop: EventLoop
    private let logger: Logger
    private let exit: @Sendable (Int32) -> Void
    private let state = Mutex(State())

    /// So long the log and the threads that ask it may take to close.
    private static let closingMs: Int64 = 4_000

    /// Takes the signals over, for the rest of the process's life. `exit` ends that, with a code; nil: the system's.
    public init(
        _ settings: NodeSettings,
        logger: Logger,
        exit: (@Sendable (Int32) -> Void)? = nil
    ) throws {
        self.logger = logger
        self.exit = exit ?? { _exit($0) }
        loop = try EventLoop()
        try loop.sync { [self] in
            for signal in [SIGTERM, SIGINT] { loop.onSignal(signal) { self.received() } }
            loop.onSignal(SIGHUP) { settings.reload(logger) }
        }
    }

    /// Whether the process was asked to end.
    public var isEndRequested: Bool { state.withLock { $0.requests > 0 } }

    /// From now on this node is the one that ends; nil: there is none.
    public func meet(_ node: GracefulShutdown?) {
        let requests = state.withLock { state in
            state.node = node
            return state.requests
        }
        guard let node, requests > 0 else { return }
        leaveBehind(node)
        for _ in 0..<min(requests, 2) { node.begin() }
    }

    private func received() {
        let (node, requests) = state.withLock { state in
            state.requests += 1
            return (state.node, state.requests)
        }
        guard let node else {
            if requests > 1 { exit(EXIT_FAILURE) }
            return
        }
        if requests == 1 { leaveBehind(node) }
        node.begin()
    }

    /// Ends the process soon after the node, whatever is still open: all that was acked is in the log, and nobody waits
    /// for an answer any more.
    private func leaveBehind(_ node: GracefulShutdown) {
        loop.execute { [self] in
            var (timer, untilMs): (LoopTimer?, Int64?) = (nil, nil)
            timer = loop.timer(after: .milliseconds(50), every: .milliseconds(50)) { [self] in
                guard node.hasEnded else { return }
                let nowMs = Int64(clamping: loop.now)
                let endMs = untilMs ?? nowMs + Self.closingMs
                untilMs = endMs
                guard nowMs >= endMs else { return }
                timer?.cancel()
                logger.warning("forced exit", ["detail": "the log did not close within \(Self.closingMs) ms"])
                exit(EXIT_SUCCESS)
            }
        }
    }
}
