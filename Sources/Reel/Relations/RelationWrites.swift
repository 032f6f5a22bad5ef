public import ReelClient

/// The result of a write that can need several events.
public struct RelationWrites: Sendable {
    /// A handle for each event, in the order of the queue. Empty if there was nothing to write.
    public let handles: [PublishHandle]
    /// The objects that the write left as they are, because their model cannot read them.
    public let problems: [ModelProblem]
}
