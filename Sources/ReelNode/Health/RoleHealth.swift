public import ReelCore

/// How one role of a node does, partition by partition.
public struct RoleHealth: Equatable, Sendable {
    /// The role.
    public var role: NodeRole
    /// How the log does for this role; the worst of what its partitions meet.
    public var log: LogState
    /// What more there is to say of the log's state; nil: nothing.
    public var detail: String?
    /// True if the other gateways are too far ahead of this one.
    public var isBehind: Bool
    /// By partition.
    public var partitions: [PartitionHealth]

    /// A role that stands like this.
    public init(
        _ role: NodeRole,
        log: LogState,
        detail: String? = nil,
        isBehind: Bool = false,
        partitions: [PartitionHealth]
    ) {
        self.role = role
        self.log = log
        self.detail = detail
        self.isBehind = isBehind
        self.partitions = partitions
    }

    /// True if the role can serve every partition.
    public var isReady: Bool { !isBehind && partitions.allSatisfy(\.isReady) }

    /// Why the role is not ready, the gravest reason first; nil: it is.
    public var reason: String? { reason { "\($0.code.rawValue): \($0.reason)" } }

    /// The same without sentences that may name files and addresses.
    var publicReason: String? { reason { $0.code.rawValue } }

    private func reason(_ describe: (PartitionHealth.Stop) -> String) -> String? {
        let places = partitions.enumerated()
        if let (number, stop) = places.lazy.compactMap({ place in
            place.element.stop.flatMap { $0.isLasting ? (place.offset, $0) : nil }
        }).first {
            return "partition \(number) has stopped: \(describe(stop))"
        }
        if let number = partitions.firstIndex(where: { !$0.isOpen }) {
            return "partition \(number) is not compared with the log yet"
        }
        if let (number, place) = places.first(where: { $0.element.seq < $0.element.goal }) {
            return "partition \(number) is at seq \(place.seq) of \(place.goal) that were there at the start"
        }
        return isBehind ? "the other gateways are too far ahead" : nil
    }

    /// The codes for which partitions of this role have stopped, each once.
    public var stopCodes: Set<ErrorCode> { Set(partitions.compactMap { $0.stop?.code }) }
}
