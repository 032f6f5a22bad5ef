import ReelBase
import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// Asks the log about the losses that other nodes claim, and then asks the node that claims one. On one loop of the
/// gateway.
///
/// The log does not show that it once had a record, so a claim of loss needs another proof. An announcement alone stops
/// no writes, because every writer of the node list can invent one. The node itself must say the same when the gateway
/// asks it, over TLS if the gateway speaks TLS.
final class LossWatch {
    private let context: GatewayContext
    private let client: PeerClient
    private var claims = LossClaims()
    private var nodes: [NodeAnnouncement] = []
    private var isAsking = false
    private var warnings = LineLimiter(lines: 1, windowMs: 60_000)

    /// The timeout of a node's answer.
    private static let timeout = Duration.seconds(5)
    /// The largest `/readyz` in bytes: two roles of thousands of partitions.
    private static let answerBytesMax = 4 << 20

    init(_ context: GatewayContext, _ client: PeerClient) {
        self.context = context
        self.client = client
    }

    /// Reads the latest announcements of the nodes. Called about once a second.
    func look(at nodes: [NodeAnnouncement], nowMs: Int64) {
        self.nodes = nodes.filter { $0.id != context.nodeID }
        claims.heard(self.nodes, of: context.epoch, partitions: context.partitions)
        tell()
        guard !isAsking, let claim = claims.next(nowMs: nowMs) else { return }
        isAsking = true
        let log = context.log
        client.loop.offload {
            claim.check(in: log)
        } then: { [self] verdict in
            switch verdict {
            case .confirmed: ask(claim) { [self] repeats in finish(claim, repeats ? verdict : .unknown) }
            case .refuted:
                warn("a node claims a loss that the log refutes", claim)
                finish(claim, verdict)
            case .unknown: finish(claim, verdict)
            }
        }
    }

    private func finish(_ claim: LossClaims.Claim, _ verdict: LossClaims.Verdict) {
        isAsking = false
        claims.answered(claim, verdict)
        tell()
    }

    /// Asks the node itself. Calls back with true if it says of the partition what it has announced.
    private func ask(_ claim: LossClaims.Claim, then: @escaping (Bool) -> Void) {
        let request = nodes.first { $0.id == claim.node }.flatMap { node in
            client.request(to: node, timeout: Self.timeout) {
                HTTPClientRequest("GET", host: $0.host, port: $0.port, target: "/readyz")
            }
        }
        guard let request else {
            warn("a node claims a loss and cannot be asked", claim)
            return then(false)
        }
        client.fetch(request, bytesMax: Self.answerBytesMax) { [self] result in
            let repeats = (try? result.get()).map { claim.isRepeated(in: $0.body) } ?? false
            if !repeats { warn("a node claims a loss and does not repeat it when it is asked", claim) }
            then(repeats)
        }
    }

    private func warn(_ event: String, _ claim: LossClaims.Claim) {
        guard let unsaid = warnings.admit(nowMs: WallClock.nowMs()) else { return }
        context.logger.warning(
            event,
            [
                "node": claim.node, "partition": "\(claim.partition)", "seq": "\(claim.seq)",
                "lines_left_out": "\(unsaid)",
            ]
        )
    }

    private func tell() {
        for partition in 0..<context.partitions {
            context.health.witnessed(partition, loss: claims.loss(of: partition))
        }
    }
}

@available(*, unavailable)
extension LossWatch: Sendable {}

extension LossClaims.Claim {
    /// True if the body of the node's `/readyz` says that the log has lost something of this partition.
    func isRepeated(in body: [UInt8]) -> Bool {
        body.withUnsafeBytes { body in
            do throws(ReelError) {
                let object = try JSONObject(body, levels: 8, shape: .internal)
                for role in try object.elements("roles") ?? [] {
                    for place in try JSONObject(role, levels: 8, shape: .internal).elements("partitions") ?? [] {
                        let place = try JSONObject(place, levels: 8, shape: .internal)
                        guard try place.integer("partition") == Int64(partition) else { continue }
                        if try place.string("code").flatMap(ErrorCode.init(rawValue:))?.isLoss == true { return true }
                    }
                }
                return false
            } catch {
                return false
            }
        }
    }
}
