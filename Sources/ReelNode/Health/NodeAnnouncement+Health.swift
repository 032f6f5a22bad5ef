public import ReelLog

extension NodeAnnouncement {
    /// Takes over the node's health: readiness, the position of each role, and the partitions that a role does not
    /// process.
    public mutating func take(_ health: NodeHealth) {
        isReady = health.isReady
        hasLeft = false
        for role in health.roles {
            let places = role.partitions.enumerated().map { Position(partition: $0.offset, seq: $0.element.seq) }
            if role.role == .snapshot, health.roles.count > 1 { folded = places } else { positions = places }
            for (partition, place) in role.partitions.enumerated() {
                guard let stop = place.stop else { continue }
                stops.append(
                    Stop(role: role.role.rawValue, partition: partition, code: stop.code, lost: stop.lost)
                )
            }
        }
    }
}
