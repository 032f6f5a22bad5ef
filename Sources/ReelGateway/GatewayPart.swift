import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// The objects of a gateway that are bound to one of its event loops.
struct GatewayPart {
    let gateway: GatewayLoop
    let server: HTTPServer
    private let client: PeerClient

    /// Makes the objects of a loop, and starts the loop's clock. On the loop.
    ///
    /// - Parameters:
    ///   - loop: The loop.
    ///   - index: The index of the loop among those of the gateway.
    ///   - context: The context of the gateway.
    ///   - from: The first seq of each partition's ring.
    ///   - node: The parts that every kind of node has.
    ///   - peers: The knowledge of other nodes that all loops share.
    init(
        on loop: EventLoop,
        index: Int,
        context: GatewayContext,
        from: [Seq],
        node: NodeServer,
        peers: PeerMemory
    ) {
        let (announcer, log, settings) = (node.announcer, context.log, context.settings)
        client = PeerClient(on: loop, settings.node, logger: context.logger)
        let gateway = GatewayLoop(
            on: loop,
            index: index,
            context: context,
            from: from,
            requests: node.answers.requests,
            outcomes: OutcomeQuestions(
                client,
                announcer: announcer,
                of: log,
                state: context.state,
                own: context.nodeID
            ),
            snapshotEvents: SnapshotEventsClient(
                client,
                announcer: announcer,
                epoch: log.epoch,
                timeout: .milliseconds(settings.indexMs)
            )
        )
        self.gateway = gateway
        let proxy = SnapshotProxy(client, announcer: announcer, peers: peers, of: log, settings)
        server = HTTPServer(
            on: loop,
            HTTPServer.Settings(settings.node),
            gate: context.gate.connections,
            handler: GatewayHTTP(gateway, answers: node.answers, proxy: proxy)
        )
        loop.timer(after: .seconds(1), every: .seconds(1)) {
            gateway.heard(of: Gateway.others(announcer.alive, than: settings.node.advertise))
            gateway.tick()
        }
    }

    /// Begins to watch the log and the other nodes, for all loops. On the loop.
    func watch(_ context: GatewayContext, _ node: NodeServer, on loop: EventLoop) {
        let probe = LogProbe(context, on: loop)
        loop.timer(after: .milliseconds(500), every: .milliseconds(500)) { [gateway] in
            probe.tick(nowMs: gateway.nowMs)
        }
        let losses = LossWatch(context, client)
        node.everySecond(on: loop, context.gate) { [gateway] in
            context.health.look(at: node.announcer.alive, nowMs: gateway.nowMs)
            losses.look(at: node.announcer.nodes, nowMs: gateway.nowMs)
        }
    }

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
