/// A fault that is injected while clients publish and listen.
struct Fault: Sendable {
    /// The name in the table.
    let name: String
    /// True if the fault is part of the short run.
    var isShort = false
    /// True if the fault needs brokers. Otherwise, without brokers, it is tried on the embedded log.
    var needsKafka = true
    /// The number of snapshot nodes.
    var snapshots = 1
    /// Prepares the cluster before the clients connect.
    var prepare: @Sendable (Scene) async throws -> Void = { _ in }
    /// Injects the fault, removes it, and returns the proof of its effect. Clients publish during the whole call.
    let strike: @Sendable (Scene) async throws -> String

    /// All faults, those with the smallest effects first.
    static let all: [Fault] = brokers + gateways + records + losses + epochs
}
