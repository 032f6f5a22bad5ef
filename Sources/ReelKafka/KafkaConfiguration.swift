/// The brokers, and the properties of the connections to them.
public struct KafkaConfiguration: Sendable {
    /// The addresses as `HOST:PORT`. Any broker that answers names all others.
    public var brokers: [String]
    /// The properties of the client that a user has set, by name.
    public var properties: [String: String]
    /// The factor by which timeouts of questions to the brokers are longer than usual.
    package var patience = 1

    /// Creates a configuration for these brokers, with librdkafka's properties as given.
    public init(brokers: [String], properties: [String: String] = [:]) {
        self.brokers = brokers
        self.properties = properties
    }

    /// The largest batch that a broker must accept, in bytes: a record of 1 MiB with key, header, and Kafka's overhead.
    public static let messageBytesMax = (1 << 20) + (64 << 10)

    /// The largest batch that a producer makes, in bytes.
    package var batchBytes: Int {
        get { properties["batch.size"].flatMap(Int.init) ?? 1_000_000 }
        set { properties["batch.size"] = "\(max(1, newValue))" }
    }

    /// Returns the settings of one kind of handle. Later ones override earlier ones: defaults, then the user's
    /// properties, then the fixed ones.
    package func settings(of kind: KafkaHandle.Kind) -> [(name: String, value: String)] {
        let own = [(name: "client.id", value: "reel")]
        let (usual, fixed) =
            switch kind {
            case .producer: (Self.producing, Self.producerFixed)
            case .telling: (Self.producing, tellingFixed)
            case .tail: (Self.tailing, Self.consumerFixed)
            case .reading: (Self.reading, Self.consumerFixed)
            }
        let given = properties.filter { KafkaProperty.named($0.key)?.matters(to: kind) ?? true }
        return own + Self.quick + usual + given.map { ($0.key, $0.value) }.sorted { $0.0 < $1.0 } + fixed
            + [("bootstrap.servers", brokers.joined(separator: ","))]
    }

    /// A broker that hangs is given up after 4 s, and a moved leader is found within half a second.
    private static let quick = [
        (name: "socket.timeout.ms", value: "4000"),
        (name: "socket.nagle.disable", value: "true"),
        (name: "reconnect.backoff.ms", value: "50"),
        (name: "reconnect.backoff.max.ms", value: "1000"),
        (name: "topic.metadata.refresh.fast.interval.ms", value: "50"),
    ]

    private static let producing = [
        (name: "request.timeout.ms", value: "3000"),
        (name: "retry.backoff.ms", value: "50"),
        (name: "linger.ms", value: "0"),
        // The maximum: `Appender` itself limits the records in flight.
        (name: "queue.buffering.max.messages", value: "2147483647"),
        (name: "queue.buffering.max.kbytes", value: "2147483647"),
    ]

    private static let producerFixed = [
        (name: "acks", value: "all"),
        (name: "enable.idempotence", value: "true"),
        // A record that times out would leave a hole before the next one.
        (name: "message.timeout.ms", value: "0"),
        (name: "message.send.max.retries", value: "2147483647"),
        (name: "message.max.bytes", value: "\(messageBytesMax)"),
        (name: "partitioner", value: "murmur2_random"),
        (name: "delivery.report.only.error", value: "false"),
    ]

    /// For single records with an awaited outcome. A record after a lost one is harmless here.
    private var tellingFixed: [(name: String, value: String)] {
        [
            (name: "acks", value: "all"),
            (name: "message.timeout.ms", value: "\(4500 * patience)"),
            (name: "message.max.bytes", value: "\(Self.messageBytesMax)"),
        ]
    }

    /// A full queue makes librdkafka 2.0.2 sleep for a second, so the queue holds about one second of records.
    private static let tailing = [
        (name: "topic.metadata.propagation.max.ms", value: "3000"),
        (name: "fetch.min.bytes", value: "1"),
        (name: "fetch.wait.max.ms", value: "250"),
        (name: "fetch.error.backoff.ms", value: "20"),
        (name: "queued.min.messages", value: "1000000"),
        (name: "queued.max.messages.kbytes", value: "131072"),
    ]

    /// For reading a range: the handle waits for nothing else.
    private static let reading = [
        (name: "topic.metadata.propagation.max.ms", value: "3000"),
        (name: "fetch.min.bytes", value: "1"),
        (name: "fetch.wait.max.ms", value: "10"),
        (name: "fetch.error.backoff.ms", value: "20"),
        (name: "queued.max.messages.kbytes", value: "4096"),
    ]

    private static let consumerFixed = [
        (name: "auto.offset.reset", value: "error"),
        (name: "check.crcs", value: "true"),
        (name: "isolation.level", value: "read_uncommitted"),
        (name: "enable.auto.commit", value: "false"),
        (name: "enable.auto.offset.store", value: "false"),
        (name: "enable.partition.eof", value: "true"),
        (name: "allow.auto.create.topics", value: "false"),
        (name: "log.connection.close", value: "true"),
        (name: "log_level", value: "6"),
    ]
}
