import ReelCore

/// Writes to the journal when a role of the node becomes ready, and when it is not any more; looks once a second.
public final class HealthWatch {
    private let health: @Sendable () -> NodeHealth
    private let logger: Logger
    /// Why each role was not ready at the last look; nil: it was.
    private var reasons: [NodeRole: String] = [:]
    private var hasLooked = false

    /// A watch that asks for the node's health at each look.
    public init(_ health: @escaping @Sendable () -> NodeHealth, logger: Logger) {
        self.health = health
        self.logger = logger
    }

    /// Looks now. A node that leaves is not ready by its own will, and says so elsewhere.
    public func look() {
        let health = health()
        guard !health.isLeaving else { return }
        for role in health.roles {
            let (before, now) = (reasons[role.role], role.reason)
            reasons[role.role] = now
            if let now, before == nil, hasLooked {
                logger.warning("not ready", ["role": role.role.rawValue, "reason": now])
            } else if now == nil, before != nil || !hasLooked {
                logger.info("ready", ["role": role.role.rawValue])
            }
        }
        hasLooked = true
    }

    /// Registers the gauges that show the same.
    public static func register(_ health: @escaping @Sendable () -> NodeHealth, _ metrics: Metrics) {
        for role in health().roles.map(\.role) {
            metrics.gauge(
                "reel_node_ready",
                "1 if the role can serve every partition, else 0.",
                labels: ["role": role.rawValue]
            ) { health().roles.first { $0.role == role }?.isReady == true ? 1 : 0 }
            for code in PartitionHealth.Stop.codes {
                metrics.gauge(
                    "reel_node_stopped_partitions",
                    "Partitions that the role does not process, by the code of the reason.",
                    labels: ["role": role.rawValue, "code": code.rawValue]
                ) {
                    health().roles.first { $0.role == role }?.partitions.count { $0.stop?.code == code } ?? 0
                }
            }
        }
    }
}

@available(*, unavailable)
extension HealthWatch: Sendable {}
