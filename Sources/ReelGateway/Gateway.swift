public import ReelCore
public import ReelLog
public import ReelNet
public import ReelNode
import Synchronization

/// A gateway between clients and the log. It keeps no durable state: only its connections would be missed.
public final class Gateway: Sendable {
    /// The address on which the gateway listens.
    public let address: SocketAddress
    /// The operator's port; nil if it has no port of its own.
    public let admin: AdminPort?
    let context: GatewayContext
    let announcer: Announcer
    private let loops: NodeLoops<GatewayPart>
    private let tails: [PartitionTail]
    let backpressure: TailBackpressure
    /// The graceful shutdown of the gateway.
    public let end: GracefulShutdown

    /// Opens a gateway on a log and listens. Blocks; do not call it on an event loop.
    ///
    /// - Parameters:
    ///   - log: The log. The caller closes it, after the gateway has ended.
    ///   - number: The number of logs that were the current one before this log.
    ///   - deployment: The deployment of the log; nil: the log is the first one of its own deployment.
    ///   - settings: The settings of the gateway.
    ///   - logger: The logger for the operator.
    ///   - metrics: The registry of the gateway's metrics.
    ///   - state: Answers questions about state in this process; nil: the gateway forwards them to a snapshot node.
    ///   - notice: Returns a problem that an operator must solve although the node serves; nil: there is none.
    /// - Throws: `LogError` if the log cannot be read, `NetError` if the gateway cannot listen on the address.
    public init(
        log: any EventLog,
        number: Int = 0,
        deployment: Deployment? = nil,
        settings: GatewaySettings = GatewaySettings(),
        logger: Logger = Logger(),
        metrics: Metrics = Metrics(),
        state: (any StateSource)? = nil,
        notice: @escaping @Sendable () -> String? = { nil }
    ) throws {
        let wanted = try SocketAddress(parsing: settings.node.listen)
        var bounds: [LogBounds] = []
        for partition in 0..<log.partitions { bounds.append(try log.bounds(partition)) }
        let starts = try WarmStart.find(in: log, bounds: bounds, records: settings.warmRecords)
        let from = starts.map(\.from)
        let current = CurrentLog(
            epoch: log.epoch,
            partitions: log.partitions,
            number: number,
            deployment: deployment
        )
        let context = GatewayContext(
            nodeID: settings.node.id,
            log: log,
            number: current.number,
            deployment: current.deployment,
            bounds: bounds,
            starts: starts,
            settings: settings,
            logger: logger,
            metrics: metrics,
            state: state,
            notice: notice
        )
        self.context = context
        let node = NodeServer(
            settings.node,
            log: log,
            current: current,
            role: state == nil ? "gateway" : "serve",
            metrics: metrics,
            logger: logger,
            ends: { context.health.lastSeqs },
            announced: { result, loop in context.health.announced(result, nowMs: loop.nowMs) },
            health: { context.health.node }
        )
        let announcer = node.announcer
        self.announcer = announcer
        let peers = PeerMemory()
        let loops = try NodeLoops(settings.node.loops) { loop, index in
            let part = GatewayPart(on: loop, index: index, context: context, from: from, node: node, peers: peers)
            if index == 0 { part.watch(context, node, on: loop) }
            return part
        }
        self.loops = loops
        let all = loops.parts
        do {
            address = try all[0].loop.sync {
                var turn = 0
                return try all[0].value.server.listen(on: wanted) { socket in
                    turn = (turn + 1) % all.count
                    let part = all[turn]
                    if part.loop.isCurrent { return part.value.server.accept(socket) }
                    part.loop.execute { part.value.server.accept(socket) }
                }
            }
            admin = try node.openAdminPort(besides: address)
        } catch {
            loops.end()
            throw error
        }
        let backpressure = TailBackpressure(loops: all.count)
        self.backpressure = backpressure
        tails = starts.enumerated().map { partition, start in
            Self.tail(partition, from: start, context: context, parts: all, backpressure)
        }
        let open = Mutex(all.count)
        end = GracefulShutdown(on: all[0].loop, settings: settings.node, logger: logger) {
            announcer.leave(on: all[0].loop)
        } askToLeave: { withinMs in
            context.health.leave()
            let others = Neighbours.some(of: Self.others(announcer.alive, than: settings.node.advertise))
            for part in all {
                part.loop.execute {
                    part.value.leave(withinMs: withinMs, nodes: others) { open.withLock { $0 -= 1 } }
                }
            }
        } connections: {
            open.withLock { $0 }
        }
        for tail in tails { tail.start() }
        node.start(on: all[0].loop, at: address)
    }

    var parts: [LoopBound<GatewayPart>] { loops.parts }

    /// The longest address, in bytes, that the gateway names to clients.
    private static let addressBytesMax = 512

    /// Returns the addresses of other gateways to which clients of this node may connect.
    static func others(_ nodes: [NodeAnnouncement], than own: String?) -> Set<String> {
        let addresses = nodes.lazy.filter { $0.role != "snapshot" }.compactMap(\.advertised)
        // Sixteen addresses must fit into a frame, whatever other nodes have announced.
        return Set(addresses.filter { $0 != own && $0.utf8.count <= addressBytesMax })
    }

    /// Returns the tail of a partition. It delivers each batch to each loop once.
    private static func tail(
        _ partition: Int,
        from: WarmStart,
        context: GatewayContext,
        parts: [LoopBound<GatewayPart>],
        _ backpressure: TailBackpressure
    ) -> PartitionTail {
        PartitionTail(
            log: context.log,
            partition: partition,
            from: from,
            hasRoom: { backpressure.hasRoom }
        ) { tail, news in
            switch news {
            case .batch(let batch):
                let load = backpressure.load(bytes: batch.costBytes)
                context.read(batch)
                for part in parts {
                    part.loop.execute {
                        part.value.gateway.received(batch)
                        load.taken()
                    }
                }
            case .skipped(let first):
                context.skipped(partition, to: first)
                for part in parts { part.loop.execute { part.value.gateway.skipped(partition, to: first) } }
            case .ended(let error, let isFenced):
                context.logger.error("log tail failed", ["partition": "\(partition)", "detail": error.description])
                let shown = ReelError(error.code, error.message)
                if isFenced, error.code == .internal {
                    context.health.stopped(partition, shown)
                    for part in parts { part.loop.execute { part.value.gateway.stopped(partition, shown) } }
                    return
                }
                guard !isFenced else { return context.health.diverged(shown) }
                if error.code != .truncated { context.health.reading(partition, fails: shown) }
                let loop = parts[0].loop
                loop.execute { restart(tail, context: context, on: loop) }
            }
        }
    }

    /// Restarts an ended tail once the log answers for its partition. Retries until then.
    private static func restart(_ tail: PartitionTail, context: GatewayContext, on loop: EventLoop) {
        loop.timer(after: .milliseconds(context.settings.tailPauseMs)) {
            loop.offload {
                do throws(LogError) {
                    // If there is a next record, the batch that contains it clears the error.
                    if try !tail.probe() { context.health.reading(tail.partition, fails: nil) }
                } catch {
                    context.health.reading(tail.partition, fails: ReelError(error.code, error.message))
                    return false
                }
                tail.start()
                return true
            } then: { hasBegun in
                guard hasBegun else { return restart(tail, context: context, on: loop) }
                context.logger.info("log tail resumed", ["partition": "\(tail.partition)"])
            }
        }
    }

    /// True if the node has read the end of the epoch.
    public var epochHasEnded: Bool { context.health.logState == .ended }

    /// Waits until the gateway has ended and its threads have stopped.
    public func waitUntilEnded() async {
        await end.wait()
        backpressure.release()
        for tail in tails { tail.stop() }
        loops.end()
        admin?.close()
    }
}
