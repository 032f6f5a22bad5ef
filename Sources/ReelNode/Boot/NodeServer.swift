internal import ReelBase
public import ReelCore
public import ReelLog
public import ReelNet
import Synchronization

/// The parts that every kind of node has around its own work: its announcements, the answers of the common routes, its
/// health and the operator's port.
public final class NodeServer: Sendable {
    /// The announcements of this node and of the others.
    public let announcer: Announcer
    /// The answers of the routes that every node has.
    public let answers: NodeAnswers
    private let settings: NodeSettings
    private let logger: Logger
    private let health: @Sendable () -> NodeHealth
    private let urls: URLs
    private let epoch: Epoch

    /// The addresses of the node, which are known once it listens.
    private final class URLs: Sendable {
        let state: Mutex<(own: String, admin: String?)>

        init(_ url: String?) { state = Mutex((url ?? "", nil)) }
    }

    /// Makes the parts of a node that does not listen yet.
    ///
    /// - Parameters:
    ///   - settings: The settings of the node.
    ///   - log: The log, through which the node announces itself.
    ///   - current: The description of the log.
    ///   - role: The role in the announcements: `gateway`, `snapshot` or `serve`.
    ///   - metrics: The registry of the node's metrics.
    ///   - logger: The logger for the operator.
    ///   - ends: Returns the last seq of each partition of the log if the node knows it; nil: the log is queried.
    ///   - announced: Called on a loop after an announcement was written, or failed.
    ///   - health: Returns the current health. Called on any thread.
    public init(
        _ settings: NodeSettings,
        log: any EventLog,
        current: CurrentLog,
        role: String,
        metrics: Metrics,
        logger: Logger,
        ends: @escaping @Sendable () -> [Seq]? = { nil },
        announced: @escaping @Sendable (Result<Void, LogError>, EventLoop) -> Void = { _, _ in },
        health: @escaping @Sendable () -> NodeHealth
    ) {
        (self.settings, self.logger, self.health, epoch) = (settings, logger, health, log.epoch)
        let urls = URLs(settings.nodeURL)
        self.urls = urls
        announcer = Announcer(log: log, logger: logger, ends: ends, written: announced) { [epoch] in
            let (url, adminURL) = urls.state.withLock { $0 }
            var node = NodeAnnouncement(
                id: settings.id,
                role: role,
                url: url,
                advertised: settings.advertise,
                build: settings.build,
                epoch: epoch,
                atMs: WallClock.nowMs()
            )
            node.adminURL = adminURL
            node.take(health())
            return node
        }
        answers = NodeAnswers(
            settings,
            log: current,
            announcer: announcer,
            metrics: metrics,
            logger: logger,
            health: health
        )
        HealthWatch.register(health, metrics)
    }

    /// Runs `body` about once a second on a loop, after a look at the health.
    ///
    /// - Parameters:
    ///   - loop: The loop. The caller is on it.
    ///   - gate: The gate of the node's connections.
    ///   - body: Called on the loop.
    public func everySecond(on loop: EventLoop, _ gate: NodeGate, _ body: @escaping () -> Void = {}) {
        let watch = HealthWatch(health, logger: logger)
        loop.timer(after: .seconds(1), every: .seconds(1)) {
            watch.look()
            gate.look()
            body()
        }
    }

    /// Opens the operator's port of a node that listens for clients.
    ///
    /// - Parameter address: The address on which the node listens for clients.
    /// - Returns: The port; nil: the settings name none.
    /// - Throws: `NetError` if the node cannot listen on the address of the operator's port.
    public func openAdminPort(besides address: SocketAddress) throws -> AdminPort? {
        let admin = try AdminPort(settings, answers: answers, logger: logger)
        let url = settings.url(address)
        urls.state.withLock { $0 = (url, admin.flatMap { settings.adminURL($0.address, of: url) }) }
        return admin
    }

    /// Begins to announce the node, and writes the log line that it listens.
    ///
    /// - Parameters:
    ///   - loop: The loop of the announcements. From any thread.
    ///   - address: The address on which the node listens for clients.
    public func start(on loop: EventLoop, at address: SocketAddress) {
        let (announcer, everyMs) = (announcer, settings.announceMs)
        loop.execute { announcer.start(on: loop, everyMs: everyMs) }
        logger.info("listening", ["address": "\(address)", "node": settings.id, "epoch": "\(epoch)"])
    }
}
