import ReelCore

/// Logs when a role of the node becomes ready or unready. The caller calls `look` once a second.
public final class HealthWatch {
    private let health: @Sendable () -> NodeHealth
    private let logger: Logger
    /// The reason why each role was not ready at the last look; nil: it was ready.
    private var reasons: [NodeRole: String] = [:]
    private var hasLooked = false

    /// A watch that calls `health` at each look.
    public init(_ health: @escaping @Sendable () -> NodeHealth, logger: Logger) {
        self.health = health
        self.logger = logger
    }

    /// Logs the changes since the last look. A node that is leaving is skipped: it is unready on purpose and logs that
    /// elsewhere.
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

    /// Registers the gauges of the roles' readiness and of stopped partitions.
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
