import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// Forwards questions about state to a snapshot node from the node list. It asks another node if one fails before the
/// first byte of its answer, or says that it cannot answer now. If a node is silent for a while, it also asks another
/// one, see `HedgedQuestion`. On its loop only.
final class SnapshotProxy {
    let client: PeerClient
    private let announcer: Announcer
    private let peers: PeerMemory
    private let epoch: Epoch
    private let partitions: Int
    let (timeout, headTimeout, hedgeMs): (Duration, Duration, Int64)
    /// Limits the log lines: every request may meet a node that is away.
    private var warnings = LineLimiter(lines: 10, windowMs: 10_000)
    private var turn = 0

    /// Creates the proxy of one loop, with the settings of the gateway. `peers` is the knowledge of the other nodes
    /// that all loops share.
    init(
        _ client: PeerClient,
        announcer: Announcer,
        peers: PeerMemory,
        of log: any EventLog,
        _ settings: GatewaySettings
    ) {
        self.client = client
        timeout = .milliseconds(settings.peerMs)
        headTimeout = .milliseconds(min(settings.peerMs, settings.peerHeadMs))
        hedgeMs = settings.hedgeMs
        self.announcer = announcer
        self.peers = peers
        (epoch, partitions) = (log.epoch, log.partitions)
    }

    /// True if another node than this one may have the state of this log.
    func hasOthers(than own: String) -> Bool {
        announcer.alive.contains { node in
            node.id != own && node.role != "gateway" && node.epoch ?? epoch == epoch && client.access.canAsk(node)
        }
    }

    /// Asks the next node, and others too if it is silent, and streams the first answer back.
    ///
    /// - Parameters:
    ///   - question: The question.
    ///   - exchange: The client's request, which gets the answer.
    ///   - own: The id of this node if it has state itself; it is not asked.
    ///   - otherwise: Called to answer if no other node does; nil: the client gets a problem.
    func pass(
        _ question: any ProxiedRequest,
        _ exchange: HTTPExchange,
        except own: String? = nil,
        otherwise: (() -> Void)? = nil
    ) {
        turn += 1
        let (partition, nowMs) = (question.partition(of: partitions), client.loop.nowMs)
        let (all, alive) = (announcer.nodes, announcer.alive)
        let (answering, refusing) = peers.use { record in
            record.asks()
            return (
                alive.filter { !record.isSilent($0.id, nowMs: nowMs) },
                Set(alive.map(\.id).filter { record.hasRefused($0, partition, nowMs: nowMs) })
            )
        }
        let others = all.filter { $0.id != own && client.access.canAsk($0) }
        let nodes = Self.order(others, alive: answering, refusing: refusing, epoch: epoch, partition, turn: turn)
        ProxiedQuestion(question, in: partition, to: nodes, exchange, by: self, otherwise: otherwise).start()
    }

    /// Returns the nodes to ask, in this order. First come the nodes that have the state of this log, in turn. Then
    /// come nodes that are `refusing`, that do not fold the partition at present, or that have folded far less of it
    /// than the others. Nodes that are not `alive` come last: they may hang. A node that has left is not asked.
    static func order(
        _ nodes: [NodeAnnouncement],
        alive: [NodeAnnouncement],
        refusing: Set<String> = [],
        epoch: Epoch,
        _ partition: Int,
        turn: Int
    ) -> [NodeAnnouncement] {
        let able = nodes.filter { node in
            (node.role == "snapshot" || node.role == "serve") && node.epoch ?? epoch == epoch && !node.hasLeft
        }
        func seq(_ node: NodeAnnouncement) -> Seq {
            node.folded(in: epoch).first { $0.partition == partition }?.seq ?? .none
        }
        let wanted = (able.map(seq).max() ?? .none) - lagMax
        let isAwake = Set(alive.map(\.id))
        let ranks = Dictionary(grouping: able) { node in
            guard isAwake.contains(node.id) else { return 2 }
            let hasStopped = node.stop(of: NodeRole.snapshot.rawValue, partition) != nil
            return seq(node) >= wanted && !refusing.contains(node.id) && !hasStopped ? 0 : 1
        }
        return (0...2).flatMap { rank in
            let group = ranks[rank] ?? []
            let start = group.isEmpty ? 0 : turn % group.count
            return group[start...] + group[..<start]
        }
    }

    /// The distance in seqs from the most advanced node above which a node counts as far behind. Within this distance
    /// it only needs a moment to catch up.
    private static let lagMax: Seq = 16_384

    /// True if a question that waits for these nodes may be sent to one more.
    func mayHedge(_ asked: [NodeAnnouncement]) -> Bool {
        let (ids, nowMs) = (asked.map(\.id), client.loop.nowMs)
        return peers.use { $0.mayHedge(asked: ids, nowMs: nowMs) }
    }

    /// Called when a node has begun to answer.
    func answers(_ node: NodeAnnouncement, _ partition: Int) {
        peers.use { $0.answered(node.id, partition) }
    }

    /// Called when a node cannot answer now.
    func refuses(_ node: NodeAnnouncement, _ partition: Int, status: Int) {
        let nowMs = client.loop.nowMs
        peers.use { $0.refused(node.id, partition, nowMs: nowMs) }
        warn("a snapshot node does not answer", node, "it cannot answer now: status \(status)")
    }

    /// Called when a node was silent for too long.
    func isSilent(_ node: NodeAnnouncement, _ detail: String) {
        let nowMs = client.loop.nowMs
        peers.use { $0.wasSilent(node.id, nowMs: nowMs) }
        warn("a snapshot node does not answer", node, detail)
    }

    /// Called when a node's answer is not one that a snapshot node sends. The node is asked after the others for a
    /// while, like a silent one.
    func doubts(_ node: NodeAnnouncement, _ detail: String) {
        let nowMs = client.loop.nowMs
        peers.use { $0.wasSilent(node.id, nowMs: nowMs) }
        warn("a snapshot node's answer is not passed on", node, detail)
    }

    func warn(_ event: String, _ node: NodeAnnouncement, _ detail: String) {
        client.warn(event, node, detail, &warnings)
    }
}
extension HTTPClientRequest {
    /// Creates the request that asks a snapshot node.
    init(_ request: StateRequest, _ origin: HTTPOrigin) {
        var (method, body) = ("GET", [UInt8]())
        var target = "/v1/streams/\(request.stream)"
        var query: [(String, String)] = []
        switch request.kind {
        case .snapshot: target += "/snapshot"
        case .delta(let after, _):
            target += "/delta"
            query.append(("after", "\(after)"))
        case .rest(let after, let cut, _):
            target += "/delta"
            query = [
                ("after", "\(after)"), ("model", HTTPRequestHead.percentEncoded(cut.name.model)),
                ("id", HTTPRequestHead.percentEncoded(cut.name.id)), ("beyond", "\(cut.beyond)"),
            ]
        case .object(let model, let id):
            target += "/objects"
            query = [("model", HTTPRequestHead.percentEncoded(model)), ("id", HTTPRequestHead.percentEncoded(id))]
        case .outcomes(let acks, let epoch):
            target += "/outcomes"
            var writer = JSONObjectWriter()
            writer.member("epoch", epoch.description)
            writer.member("acks", acks) { $0.append(acked: $1) }
            (method, body) = ("POST", writer.finish())
        case .sites(let after, let limit, _):
            target += "/sites"
            if after != .none { query.append(("after", "\(after)")) }
            query.append(("limit", "\(limit)"))
        }
        if body.isEmpty {
            if let epoch = request.kind.epoch { query.append(("epoch", "\(epoch)")) }
            if request.seqMin != .none { query.append(("min_seq", "\(request.seqMin)")) }
        }
        if !query.isEmpty { target += "?" + query.map { "\($0)=\($1)" }.joined(separator: "&") }
        self.init(method, host: origin.host, port: origin.port, target: target, body: body)
    }
}
