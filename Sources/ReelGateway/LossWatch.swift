import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// Asks the log about what other nodes say it has lost. On one loop of the gateway.
final class LossWatch {
    private let share: GatewayShare
    private let loop: EventLoop
    private var claims = LossClaims()
    private var isAsking = false
    private var warnings = LineLimiter(lines: 1, windowMs: 60_000)

    init(_ share: GatewayShare, on loop: EventLoop) {
        self.share = share
        self.loop = loop
    }

    /// Looks at what the nodes announced last; about once a second.
    func look(at nodes: [NodeAnnouncement], nowMs: Int64) {
        let others = nodes.filter { $0.id != share.nodeID }
        claims.heard(others, of: share.epoch, partitions: share.partitions)
        tell()
        guard !isAsking, let claim = claims.next(nowMs: nowMs) else { return }
        isAsking = true
        let log = share.log
        loop.offload {
            claim.check(in: log)
        } then: { [self] verdict in
            isAsking = false
            if case .refuted = verdict, let unsaid = warnings.admit(nowMs: WallClock.nowMs()) {
                share.journal.warning(
                    "a node claims a loss that the log refutes",
                    [
                        "node": claim.node, "partition": "\(claim.partition)", "seq": "\(claim.seq)",
                        "lines_left_out": "\(unsaid)",
                    ]
                )
            }
            claims.answered(claim, verdict)
            tell()
        }
    }

    private func tell() {
        for partition in 0..<share.partitions { share.witnessed(partition, loss: claims.loss(of: partition)) }
    }
}

@available(*, unavailable)
extension LossWatch: Sendable {}
