internal import Synchronization

/// The models that a closure has read.
final class ModelReads: Sendable {
    private let state = Mutex((names: Set<String>(), isAll: false))

    /// Notes that objects of a model were read.
    func note(_ model: String) { state.withLock { _ = $0.names.insert(model) } }

    /// Notes that objects of any model may have been read.
    func noteAll() { state.withLock { $0.isAll = true } }

    /// Returns true if objects of a model may have been read.
    func contains(_ model: String) -> Bool { state.withLock { $0.isAll || $0.names.contains(model) } }
}
