/// The objects whose reference dangles.
public struct Orphans<M: Model>: Sendable {
    /// The objects, sorted by the bytes of their ids. The target of each was deleted, never existed, or has not arrived
    /// yet (see `isComplete`).
    public var values: [M] = []
    /// The objects that the model cannot read and that are not known to have a target, in the same order.
    public var problems: [ModelProblem] = []
    /// True if this device has had the whole stream, so that a target which is absent does not exist. False while the
    /// first state arrives: a target may be one of the objects that are still missing.
    public var isComplete: Bool
}

extension Orphans: Equatable where M: Equatable {}
