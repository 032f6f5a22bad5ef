public import ReelCore

/// The health of one role of a node, with each partition.
public struct RoleHealth: Equatable, Sendable {
    /// The role.
    public var role: NodeRole
    /// The state of the log: the worst state that any partition of the role sees.
    public var log: LogState
    /// Details of the log's state; nil: none.
    public var detail: String?
    /// True if the lag of this gateway relative to the other gateways is too large.
    public var isBehind: Bool
    /// The health of each partition, by its number.
    public var partitions: [PartitionHealth]

    /// The health of a role.
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

    /// The reason why the role is not ready, the most serious one first; nil: it is ready.
    public var reason: String? { reason { "\($0.code.rawValue): \($0.reason)" } }

    /// The same reason without sentences that may name files and addresses.
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

    /// The codes of the stopped partitions of this role.
    public var stopCodes: Set<ErrorCode> { Set(partitions.compactMap { $0.stop?.code }) }
}
