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

    /// Checks what can be checked before anything starts: that something is published, and that this process may have
    /// as many file descriptors as clients and proxies need.
    public func check() throws(LoadFailure) {
        guard publishers > 0 else {
            throw LoadFailure(
                .plan,
                "found \(publishers) publishers, expected at least one: where nothing is published, nothing is shown"
            )
        }
        let clients = publishers + readers
        try DescriptorLimit.reserve(descriptors, for: "\(clients) clients and their proxies")
    }

    /// How many brokers there are.
    var brokers: Int { kafka == nil ? 0 : 3 }

    /// How many file descriptors it needs at most. A client has a socket of its own, and at each proxy two that may
    /// stay there while the way is broken, although the client has gone elsewhere.
    var descriptors: Int {
        let clients = (publishers + readers) * (1 + 2 * gateways)
        let nodes = gateways + snapshots
        // A node has a few connections with each broker, for what it writes, what it reads and what it asks.
        let ofBrokers = 2 * 8 * nodes * brokers
        // Pipes of a process, and what its proxy listens at.
        let ofProcesses = 8 * (nodes + brokers)
        return clients + ofBrokers + ofProcesses + DescriptorLimit.spare
    }
}
