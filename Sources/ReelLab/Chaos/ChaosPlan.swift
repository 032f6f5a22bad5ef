/// The settings of a chaos run.
public struct ChaosPlan: Sendable {
    /// The seed of the schedule of faults.
    public var seed: UInt64 = 1
    /// The duration of the faults in seconds; nil: until `ChaosRun.stop`.
    public var seconds: Int?
    /// The number of gateways, each of which has a proxy.
    public var gateways = 3
    /// The number of snapshot nodes.
    public var snapshots = 2
    /// The number of clients that publish.
    public var publishers = 10
    /// The number of clients that listen.
    public var readers = 10
    /// The rate of all publishers together, in events per second.
    public var rate = 100.0
    /// The Kafka whose three brokers hold the log; nil: the log is in SQLite.
    public var kafka: KafkaHome?

    /// Creates a plan with a log in SQLite.
    public init() {}

    /// Checks the plan before anything starts. Throws if there is no publisher, or if this process may not open the
    /// file descriptors that clients and proxies need.
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

    /// The number of brokers.
    var brokers: Int { kafka == nil ? 0 : 3 }

    /// The maximum number of file descriptors that the run needs. A client has one socket of its own, and two at each
    /// proxy. The latter may stay open while the network is broken, although the client has moved to another gateway.
    var descriptors: Int {
        let clients = (publishers + readers) * (1 + 2 * gateways)
        let nodes = gateways + snapshots
        // A node has a few connections with each broker, for writing, reading and queries.
        let ofBrokers = 2 * 8 * nodes * brokers
        // The pipes of a process, and the listener of its proxy.
        let ofProcesses = 8 * (nodes + brokers)
        return clients + ofBrokers + ofProcesses + DescriptorLimit.spare
    }
}
