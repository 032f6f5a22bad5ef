/// What a chaos run is made of.
public struct ChaosPlan: Sendable {
    /// From which the schedule of faults follows.
    public var seed: UInt64 = 1
    /// So long things go wrong; nil: until `ChaosRun.stop`.
    public var seconds: Int?
    /// Gateways, each behind a proxy.
    public var gateways = 3
    /// Snapshot nodes.
    public var snapshots = 2
    /// Clients that publish.
    public var publishers = 10
    /// Clients that listen.
    public var readers = 10
    /// Events a second, all publishers together.
    public var rate = 100.0
    /// Put the log on three brokers of this Kafka; nil: on SQLite.
    public var kafka: KafkaHome?

    /// On SQLite.
    public init() {}
}
