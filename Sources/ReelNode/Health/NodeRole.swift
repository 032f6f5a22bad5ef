/// A role of a node. A process of `reel serve` has both roles.
public enum NodeRole: String, CaseIterable, Sendable {
    /// Serves clients and appends to the log.
    case gateway
    /// Folds the log and answers requests about state.
    case snapshot
}
