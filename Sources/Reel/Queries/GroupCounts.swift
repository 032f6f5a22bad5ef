/// The numbers of a query's objects by group.
public struct GroupCounts<Group: Hashable & Sendable>: Sendable, Hashable {
    /// The number of objects of each group that has any.
    public let counts: [Group: Int]
    /// True if the whole stream has arrived on this device, so that the counts include every object.
    public let isComplete: Bool

    /// The number of objects of a group.
    public subscript(group: Group) -> Int { counts[group] ?? 0 }

    /// The number of objects of all groups.
    public var total: Int { counts.values.reduce(0, +) }
}
