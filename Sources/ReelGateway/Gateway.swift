public import ReelCore
public import ReelLog
public import ReelNet
public import ReelNode
import Synchronization

/// A gateway between clients and the log. It keeps no durable state: only its connections would be missed.
public final class Gateway: Sendable {
    /// One event loop of the gateway, with the objects that are bound to it.
    struct Part {
        let gateway: GatewayLoop
        let http: GatewayHTTP
        let server: HTTPServer
    }

    /// The address on which the gateway listens.
    public let address: SocketAddress
    /// The operator's port; nil if it has no port of its own.
    public let admin: AdminPort?
    let context: GatewayContext
    let announcer: Announcer
    let parts: [LoopBound<Part>]
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
        let (announcer, answers) = (node.announcer, node.answers)
        self.announcer = announcer
        let peers = PeerMemory()
        var parts: [LoopBound<Part>] = []
        for (index, loop) in try Self.loops(settings.node.loops).enumerated() {
            parts.append(
                try loop.sync {
                    let client = PeerClient(on: loop, settings.node, logger: logger)
                    let gateway = GatewayLoop(
                        on: loop,
                        index: index,
                        context: context,
                        from: from,
                        requests: answers.requests,
                        outcomes: OutcomeQuestions(
                            client,
                            announcer: announcer,
                            of: log,
                            state: state,
                            own: context.nodeID
                        ),
                        snapshotEvents: SnapshotEventsClient(
                            client,
                            announcer: announcer,
                            epoch: log.epoch,
                            timeout: .milliseconds(settings.indexMs)
                        )
                    )
                    let proxy = SnapshotProxy(client, announcer: announcer, peers: peers, of: log, settings)
                    let http = GatewayHTTP(gateway, answers: answers, proxy: proxy)
                    let server = HTTPServer(
                        on: loop,
                        HTTPServer.Settings(settings.node),
                        gate: context.gate.connections,
                        handler: http
                    )
                    if index == 0 {
                        let probe = LogProbe(context, on: loop)
                        loop.timer(after: .milliseconds(500), every: .milliseconds(500)) {
                            probe.tick(nowMs: gateway.nowMs)
                        }
                        let losses = LossWatch(context, client)
                        node.everySecond(on: loop, context.gate) {
                            context.health.look(at: announcer.alive, nowMs: gateway.nowMs)
                            losses.look(at: announcer.nodes, nowMs: gateway.nowMs)
                        }
                    }
                    loop.timer(after: .seconds(1), every: .seconds(1)) {
                        gateway.heard(of: Self.others(announcer.alive, than: settings.node.advertise))
                        gateway.tick()
                    }
                    return LoopBound(Part(gateway: gateway, http: http, server: server), on: loop)
                }
            )
        }
        self.parts = parts
        let all = parts
        do {
            address = try parts[0].loop.sync {
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
            for part in parts { part.loop.stop() }
            for part in parts { part.loop.join() }
            throw error
        }
        let backpressure = TailBackpressure(loops: all.count)
        self.backpressure = backpressure
        tails = starts.enumerated().map { partition, start in
            Self.tail(partition, from: start, context: context, parts: all, backpressure)
        }
        let open = Mutex(parts.count)
        end = GracefulShutdown(on: parts[0].loop, settings: settings.node, logger: logger) {
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
        node.start(on: parts[0].loop, at: address)
    }

    /// Returns `count` new event loops. If it throws, it leaves none running.
    private static func loops(_ count: Int) throws -> [EventLoop] {
        var loops: [EventLoop] = []
        do {
            for _ in 0..<count { loops.append(try EventLoop()) }
        } catch {
            for loop in loops { loop.stop() }
            for loop in loops { loop.join() }
            throw error
        }
        return loops
    }

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
        parts: [LoopBound<Part>],
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
        for part in parts { part.loop.stop() }
        for part in parts { part.loop.join() }
        admin?.close()
    }
}

extension Gateway.Part {
    /// Stops accepting clients and asks all clients to leave, spread evenly over a period. On the loop.
    ///
    /// - Parameters:
    ///   - withinMs: The length of the period in milliseconds.
    ///   - nodes: The addresses of other gateways, which the clients are told.
    ///   - left: Called once no connection is left.
    func leave(withinMs: Int64, nodes: [String], then left: @escaping @Sendable () -> Void) {
        server.drain { left() }
        let (clients, waiters) = (gateway.clients.values, gateway.fanOut.waiters.all)
        for (index, client) in clients.enumerated() {
            let moment = withinMs * Int64(index) / Int64(clients.count)
            client.askToLeave(afterMs: moment, nodes: nodes)
        }
        for (index, waiter) in waiters.enumerated() {
            waiter.askToLeave(afterMs: withinMs * Int64(index) / Int64(waiters.count))
        }
        _ = gateway.loop.every(20) {
            for client in gateway.clients.values { client.tick(nowMs: gateway.nowMs) }
            for waiter in gateway.fanOut.waiters.all { waiter.tick(nowMs: gateway.nowMs) }
        }
    }
}
