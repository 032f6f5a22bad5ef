import ReelCore
import ReelLog
import ReelNode

/// The parts that the loops of a gateway have in common: the log, the settings, and objects for use from any thread.
/// The context itself never changes.
final class GatewayContext: Sendable {
    let nodeID: String
    let log: any EventLog
    let epoch: Epoch
    /// The number of logs that were the current one before this one.
    let number: Int
    let deployment: Deployment
    let partitions: Int
    let settings: GatewaySettings
    let logger: Logger
    let meters: GatewayMeters
    let gate: NodeGate
    /// Answers questions about state in this process; nil: the gateway forwards them to a snapshot node.
    let state: (any StateSource)?
    let health: SharedHealth
    let limits: ClientLimits
    /// The cache of log pages for clients that catch up.
    let pages: PageCache

    /// Creates the context of a gateway for a log. `bounds` and `starts` have an entry for each partition: its present
    /// bounds, and the place from which on it is read.
    init(
        nodeID: String,
        log: any EventLog,
        number: Int,
        deployment: Deployment? = nil,
        bounds: [LogBounds],
        starts: [WarmStart],
        settings: GatewaySettings,
        logger: Logger,
        metrics: Metrics,
        state: (any StateSource)?,
        notice: @escaping @Sendable () -> String? = { nil }
    ) {
        self.nodeID = nodeID
        self.log = log
        epoch = log.epoch
        self.number = number
        self.deployment = deployment ?? Deployment(beginningWith: log.epoch)
        partitions = log.partitions
        self.settings = settings
        self.logger = logger
        meters = GatewayMeters(metrics, epoch: log.epoch, logger: logger)
        gate = NodeGate(settings.node, metrics: metrics, logger: logger)
        self.state = state
        health = SharedHealth(
            GatewayHealth(of: log, bounds: bounds, starts: starts, settings),
            nodeID: nodeID,
            log: log,
            state: state,
            peers: PeerAccess(settings.node),
            logger: logger,
            notice: notice
        )
        limits = ClientLimits(settings, meters.limits)
        pages = PageCache(log, byteLimit: settings.pageBytes)
        GatewayMeters.watch(self, metrics)
    }

    /// Called with each batch of the tail, on a thread of the log.
    func read(_ batch: TailBatch) {
        meters.eventsRead.add(batch.kinds.count)
        if !batch.voids.isEmpty {
            meters.voids.note(batch.voids, in: batch.partition)
        } else if batch.seedsEnd == nil {
            pages.validated.add(batch.seqs, of: batch.partition)
        }
        health.read(batch)
    }

    /// Called when the log was trimmed before it was read. Reading continues at `first`.
    func skipped(_ partition: Int, to first: Seq) {
        meters.trimsSkipped.add()
        health.skipped(partition, to: first)
    }
}
