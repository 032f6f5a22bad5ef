package import CRdkafka
package import ReelCore
package import ReelKafka
import ReelLog
import Testing

/// A mock cluster of librdkafka: brokers in this process that speak Kafka's protocol on loopback, and fail on demand.
/// Other processes can use them, too.
///
/// It has no Admin API and keeps duplicates. It does not wake a waiting fetch, so clients wait for at most one
/// millisecond.
package final class MockBrokers: @unchecked Sendable {
    private let handle: OpaquePointer
    private let cluster: OpaquePointer

    /// The addresses of the brokers, `HOST:PORT`.
    package let brokers: [String]

    /// Starts `count` brokers.
    package init(_ count: Int = 1) throws {
        let reason = UnsafeMutablePointer<CChar>.allocate(capacity: 512)
        defer { reason.deallocate() }
        let properties = try #require(rd_kafka_conf_new())
        rd_kafka_conf_set_log_cb(properties) { _, _, _, _ in }
        handle = try #require(rd_kafka_new(RD_KAFKA_PRODUCER, properties, reason, 512))
        cluster = try #require(rd_kafka_mock_cluster_new(handle, Int32(count)))
        brokers = String(cString: rd_kafka_mock_cluster_bootstraps(cluster)).split(separator: ",").map(String.init)
    }

    deinit {
        rd_kafka_mock_cluster_destroy(cluster)
        rd_kafka_destroy(handle)
    }

    /// Creates a topic as `reel topic create` would.
    package func topic(_ name: String, partitions: Int = 1) {
        #expect(rd_kafka_mock_topic_create(cluster, name, Int32(partitions), 1) == RD_KAFKA_RESP_ERR_NO_ERROR)
    }

    /// Makes the brokers claim that they support Fetch up to this version.
    package func claim(fetch version: Int16) {
        #expect(rd_kafka_mock_set_apiversion(cluster, 1, 0, version) == RD_KAFKA_RESP_ERR_NO_ERROR)
    }

    /// The configuration of clients of these brokers. The timeouts are long, because a busy machine may be slow, and
    /// the brokers would store a resent record twice.
    package var configuration: KafkaConfiguration {
        var configuration = KafkaConfiguration(
            brokers: brokers,
            properties: [
                "fetch.wait.max.ms": "1", "socket.timeout.ms": "300000", "request.timeout.ms": "300000",
            ]
        )
        configuration.patience = 20
        return configuration
    }

    /// A configuration for a producer that waits for each answer. The mock cluster does not check sequence numbers, so
    /// it would accept a request after a failed one. librdkafka would then assume that the failed one is in the log.
    package var oneRequestAtATime: KafkaConfiguration {
        var configuration = configuration
        configuration.properties["max.in.flight.requests.per.connection"] = "1"
        return configuration
    }

    /// A kind of request by its number in Kafka's protocol.
    package enum Request: Int16 {
        case produce = 0, fetch, ends
        case producerId = 22
    }

    /// Makes the next requests of this kind fail, one with each of these errors. `RD_KAFKA_RESP_ERR__TRANSPORT` closes
    /// the connection instead of an answer.
    package func fail(_ request: Request, _ errors: rd_kafka_resp_err_t...) {
        rd_kafka_mock_push_request_errors_array(cluster, request.rawValue, errors.count, errors)
    }

    /// Removes the pending failures of requests of this kind.
    package func clear(_ request: Request) {
        rd_kafka_mock_clear_request_errors(cluster, request.rawValue)
    }

    /// Closes all connections of the broker and refuses new ones; −1 means all brokers.
    package func down(_ broker: Int32 = -1) { rd_kafka_mock_broker_set_down(cluster, broker) }

    /// Accepts connections to the broker again; −1 means all brokers.
    package func up(_ broker: Int32 = -1) { rd_kafka_mock_broker_set_up(cluster, broker) }

    /// Delays the answers of the broker by `ms` milliseconds; −1 means all brokers.
    package func delay(ms: Int32, of broker: Int32 = -1) { rd_kafka_mock_broker_set_rtt(cluster, broker, ms) }

    /// Delays the answer to the next request of this kind by `ms` milliseconds. The request itself is executed at once.
    package func answerLate(_ request: Request, ms: Int32, of broker: Int32 = 1) {
        #expect(reel_rd_kafka_mock_delay(cluster, broker, request.rawValue, ms) == RD_KAFKA_RESP_ERR_NO_ERROR)
    }

    /// Sets the error that the brokers report for the log's topic from now on.
    package func say(_ error: rd_kafka_resp_err_t, of log: KafkaLog) {
        say(error, ofTopic: "reel.\(log.epoch)")
    }

    /// Makes the brokers report that the topic does not exist. Otherwise they would create it on the first query.
    package func hide(_ topic: String) {
        self.topic(topic)
        say(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, ofTopic: topic)
    }

    /// Sets the error that the brokers report for a topic from now on.
    package func say(_ error: rd_kafka_resp_err_t, ofTopic name: String) {
        rd_kafka_mock_topic_set_error(cluster, name, error)
    }

    /// Moves the leadership of the partition to another broker; −1 means no leader.
    package func lead(_ log: KafkaLog, _ partition: Int32, by broker: Int32) {
        rd_kafka_mock_partition_set_leader(cluster, "reel.\(log.epoch)", partition, broker)
    }

    /// Makes a follower serve reads of the partition, with its records before `end`; nil means all records.
    package func follow(_ log: KafkaLog, _ partition: Int32, by broker: Int32, before end: Seq?) {
        rd_kafka_mock_partition_set_follower(cluster, "reel.\(log.epoch)", partition, broker)
        rd_kafka_mock_partition_set_follower_wmarks(cluster, "reel.\(log.epoch)", partition, -1, end ?? -1)
    }

    /// Creates a log in a new topic. The partition `leaderless` has no leader, so no producer has ever sent records to
    /// it.
    package func log(
        epoch: Epoch = .random(),
        partitions: Int = 4,
        leaderless: Int32? = nil,
        configuration: KafkaConfiguration? = nil,
        lines: @escaping KafkaLogLine = { _, _, _ in },
        messageBytesMax: @escaping @Sendable () -> Int? = { nil }
    ) throws -> KafkaLog {
        let topic = "reel.\(epoch)"
        let code = rd_kafka_mock_topic_create(cluster, topic, Int32(partitions), 1)
        #expect(code == RD_KAFKA_RESP_ERR_NO_ERROR)
        if let leaderless { rd_kafka_mock_partition_set_leader(cluster, topic, leaderless, -1) }
        return try KafkaLog(
            epoch: epoch,
            partitions: partitions,
            topic: topic,
            configuration: configuration ?? self.configuration,
            directory: NoDirectory(),
            messageBytesMax: messageBytesMax,
            log: lines
        )
    }

    /// Creates a log of `oneRequestAtATime`, makes it the current one and opens it. No node announces itself on it.
    package func currentLog(
        partitions: Int = 1,
        lines: @escaping KafkaLogLine = { _, _, _ in }
    ) throws -> KafkaLog {
        let current = CurrentLog(epoch: .random(), partitions: partitions, number: 0)
        topic("reel.control")
        let log = try log(
            epoch: current.epoch,
            partitions: partitions,
            configuration: oneRequestAtATime,
            lines: lines
        )
        let store = try KafkaLogStore(oneRequestAtATime) { _, _, _ in }
        defer { store.close() }
        try store.advance(to: current)
        return log
    }
}

/// A directory without nodes, because the mock cluster has no topic for announcements.
private final class NoDirectory: NodeDirectory {
    func announce(_ node: NodeAnnouncement) throws(LogError) {}
    func nodes() throws(LogError) -> [NodeAnnouncement] { [] }
}
