public import ReelCore
public import ReelLog
public import ReelNet
public import ReelNode
import Synchronization

/// A snapshot node as a process: it folds the log, answers over HTTP, and announces itself to its peers.
public final class SnapshotServer: Sendable {
    /// The address where the node listens.
    public let address: SocketAddress
    /// The port for the operator; nil: the node has no such port.
    public let admin: AdminPort?
    /// The graceful shutdown of the node.
    public let end: GracefulShutdown
    private let node: SnapshotNode
    private let loops: NodeLoops<HTTPServer>

    /// Opens a snapshot node on a log and listens. The log object must belong to this node alone. The caller closes it
    /// after the node has ended. Not on an event loop.
    ///
    /// - Parameters:
    ///   - log: The log to fold.
    ///   - number: The number of logs that were the current one before this log.
    ///   - deployment: The deployment of the log; nil: the log is the first of its deployment.
    ///   - settings: The settings of the snapshot node.
    ///   - common: The settings that every kind of node has.
    ///   - logger: Receives the log lines.
    ///   - metrics: Receives the metrics.
    ///   - notice: Returns a matter that an operator must attend to although the node serves; nil: none.
    /// - Throws: `LogError` if the log cannot be read, `SnapshotError` if the folder cannot be locked or made, and
    ///   `NetError` if the node cannot listen on the address.
    public init(
        log: any EventLog,
        number: Int = 0,
        deployment: Deployment? = nil,
        settings: SnapshotSettings,
        common: NodeSettings = NodeSettings(),
        logger: Logger = Logger(),
        metrics: Metrics = Metrics(),
        notice: @escaping @Sendable () -> String? = { nil }
    ) throws {
        let wanted = try SocketAddress(parsing: common.listen)
        // A log that cannot be read is reported at the start.
        for partition in 0..<log.partitions { _ = try log.bounds(partition) }
        let node = try SnapshotNode(
            log: log,
            number: number,
            deployment: deployment,
            settings: settings,
            logger: logger,
            metrics: metrics
        )
        self.node = node
        let isLeaving = Atomic<Bool>(false)
        let health: @Sendable () -> NodeHealth = {
            NodeHealth([node.health], isLeaving: isLeaving.load(ordering: .relaxed), notices: [log.notice, notice()])
        }
        let current = CurrentLog(
            epoch: log.epoch,
            partitions: log.partitions,
            number: number,
            deployment: deployment
        )
        let parts = NodeServer(
            common,
            log: log,
            current: current,
            role: "snapshot",
            metrics: metrics,
            logger: logger,
            health: health
        )
        let gate = NodeGate(common, metrics: metrics, logger: logger)
        let loops: NodeLoops<HTTPServer>
        do {
            loops = try NodeLoops(1) { loop, _ in
                let http = SnapshotHTTP(
                    node,
                    answers: parts.answers,
                    tokens: common.tokens,
                    origins: OriginRules(common)
                )
                parts.everySecond(on: loop, gate)
                return HTTPServer(on: loop, HTTPServer.Settings(common), gate: gate.connections, handler: http)
            }
        } catch {
            node.close()
            throw error
        }
        self.loops = loops
        let (server, loop) = (loops.parts[0], loops.parts[0].loop)
        do {
            address = try loop.sync { try server.value.listen(on: wanted) }
            admin = try parts.openAdminPort(besides: address)
        } catch {
            loops.end()
            node.close()
            throw error
        }
        end = GracefulShutdown(on: loop, settings: common, logger: logger) {
            parts.announcer.leave(on: loop)
        } askToLeave: { _ in
            isLeaving.store(true, ordering: .relaxed)
            server.value.drain {}
        } connections: {
            server.value.counters.open
        }
        parts.start(on: loop, at: address)
    }

    /// True if the node has folded the end of the epoch.
    public var epochHasEnded: Bool { node.epochHasEnded }

    /// Returns once the node has ended and none of its threads run any more.
    public func waitUntilEnded() async {
        await end.wait()
        loops.end()
        node.close()
        admin?.close()
    }
}
