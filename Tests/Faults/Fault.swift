/// Something that goes wrong, while clients go on.
struct Fault: Sendable {
    /// What the table calls it.
    let name: String
    /// Whether it is among those that are tried in a hurry.
    var isShort = false
    /// Whether it needs brokers; else it is tried on the embedded log where there are none.
    var needsKafka = true
    /// How many snapshot nodes there are.
    var snapshots = 1
    /// What must be so before clients come.
    var prepare: @Sendable (Scene) async throws -> Void = { _ in }
    /// Does it, undoes it, and returns the proof that it took effect. Clients publish all the time.
    let strike: @Sendable (Scene) async throws -> String

    /// All of them, the gentle ones first.
    static let all: [Fault] = brokers + gateways + records + losses + epochs
}
