/// Which brokers, and how to talk to them.
public struct KafkaConfiguration: Sendable {
    /// Each `HOST:PORT`; any of them that answers names all others.
    public var brokers: [String]
    /// What a user set of the client's properties, by name.
    public var properties: [String: String]
    /// How many times as long as usual questions wait for their answers.
    package var patience = 1

    /// These brokers, with librdkafka's own properties as given.
    public init(brokers: [String], properties: [String: String] = [:]) {
        self.brokers = brokers
        self.properties = properties
    }

    /// The largest batch that a broker must take: a record of 1 MiB with key, header, and what Kafka puts around it.
    public static let messageBytesMax = (1 << 20) + (64 << 10)

    /// The largest batch that a producer makes.
    package var batchBytes: Int {
        get { properties["batch.size"].flatMap(Int.init) ?? 1_000_000 }
        set { properties["batch.size"] = "\(max(1, newValue))" }
    }

    /// What one kind of handle is made with, later ones over earlier ones: what is good, what the user set, what must
    /// be so.
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

    /// A hung broker is left after 4 s, a moved leader found within half a second.
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
        // As far as they go: what may be on its way is bounded by whoever appends.
        (name: "queue.buffering.max.messages", value: "2147483647"),
        (name: "queue.buffering.max.kbytes", value: "2147483647"),
    ]

    private static let producerFixed = [
        (name: "acks", value: "all"),
        (name: "enable.idempotence", value: "true"),
        // A record that times out leaves a hole before the one behind it.
        (name: "message.timeout.ms", value: "0"),
        (name: "message.send.max.retries", value: "2147483647"),
        (name: "message.max.bytes", value: "\(messageBytesMax)"),
        (name: "partitioner", value: "murmur2_random"),
        (name: "delivery.report.only.error", value: "false"),
    ]

    /// One record at a time, whose outcome is asked for at once: a place behind a lost one does not matter.
    private var tellingFixed: [(name: String, value: String)] {
        [
            (name: "acks", value: "all"),
            (name: "message.timeout.ms", value: "\(4500 * patience)"),
            (name: "message.max.bytes", value: "\(Self.messageBytesMax)"),
        ]
    }

    /// A full queue makes librdkafka 2.0.2 sleep for a second, so it holds about that much.
    private static let tailing = [
        (name: "topic.metadata.propagation.max.ms", value: "3000"),
        (name: "fetch.min.bytes", value: "1"),
        (name: "fetch.wait.max.ms", value: "250"),
        (name: "fetch.error.backoff.ms", value: "20"),
        (name: "queued.min.messages", value: "1000000"),
        (name: "queued.max.messages.kbytes", value: "131072"),
    ]

    /// A range is read from a handle that waits for nothing else.
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
