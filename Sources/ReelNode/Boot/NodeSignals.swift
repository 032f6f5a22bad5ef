import Glibc
import ReelNet
import Synchronization

/// Handles the signals of a process that runs nodes one after the other, also while no node runs.
///
/// SIGTERM and SIGINT end the current node gracefully, and no further node starts. If no node runs, a second signal
/// ends the process at once. A log that hangs does not keep the process alive: the process exits `closingMs` after the
/// end of the node.
///
/// SIGHUP reads the files of the certificate and the keys again. A node without such files logs that and continues.
public final class NodeSignals: Sendable {
    private struct State {
        var requests = 0
        var node: GracefulShutdown?
    }

    private let loop: EventLoop
    private let logger: Logger
    private let exit: @Sendable (Int32) -> Void
    private let state = Mutex(State())

    /// The time that the log and the threads that use it may take to close, in milliseconds.
    private static let closingMs: Int64 = 4_000

    /// Handles the signals until the process ends.
    ///
    /// - Parameters:
    ///   - settings: The settings of the nodes. SIGHUP reads their files again.
    ///   - logger: The logger of the process.
    ///   - exit: Ends the process with an exit code; nil: the system's `_exit`.
    /// - Throws: `NetError` if the process has no descriptor or thread left.
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

    /// True if the process was asked to end.
    public var isEndRequested: Bool { state.withLock { $0.requests > 0 } }

    /// Sets the node that a signal ends; nil: no node runs. If a signal has already arrived, the shutdown begins now.
    public func meet(_ node: GracefulShutdown?) {
        let requests = state.withLock { state in
            state.node = node
            return state.requests
        }
        guard let node, requests > 0 else { return }
        scheduleForcedExit(node)
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
        if requests == 1 { scheduleForcedExit(node) }
        node.begin()
    }

    /// Ends the process `closingMs` after the end of the node, even if threads still run. All acknowledged events are
    /// in the log, and no client waits for an answer any more.
    private func scheduleForcedExit(_ node: GracefulShutdown) {
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
