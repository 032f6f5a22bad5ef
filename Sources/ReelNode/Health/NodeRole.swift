/// What a node does. A process of `reel serve` has both roles.
public enum NodeRole: String, CaseIterable, Sendable {
    /// Takes clients and appends to the log.
    case gateway
    /// Folds the log and answers questions about state.
    case snapshot
}
