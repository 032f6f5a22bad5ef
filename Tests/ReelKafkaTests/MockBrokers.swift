import CRdkafka
import ReelCore
import ReelKafka
import ReelLog
import Testing

/// librdkafka's own mock cluster: brokers in this process that speak Kafka on loopback, and fail on demand.
///
/// It has no Admin API, drops no duplicates, and does not wake a waiting fetch, so clients wait a millisecond at most.
final class MockBrokers: @unchecked Sendable {
    private let handle: OpaquePointer
    private let cluster: OpaquePointer

    /// The list of brokers.
    let brokers: [String]

    init(_ count: Int = 1) throws {
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

    /// How a client talks to these brokers.
    var configuration: KafkaConfiguration {
        KafkaConfiguration(brokers: brokers, properties: ["fetch.wait.max.ms": "1"])
    }

    /// A log in a topic of its own.
    func log(
        epoch: Epoch = .random(),
        partitions: Int = 4,
        configuration: KafkaConfiguration? = nil
    ) throws -> KafkaLog {
        let topic = "reel.\(epoch)"
        let code = rd_kafka_mock_topic_create(cluster, topic, Int32(partitions), 1)
        #expect(code == RD_KAFKA_RESP_ERR_NO_ERROR)
        return try KafkaLog(
            epoch: epoch,
            partitions: partitions,
            topic: topic,
            configuration: configuration ?? self.configuration,
            directory: NoDirectory(),
            log: { _, _ in }
        )
    }
}

/// The mock cluster knows no topic of announcements.
final class NoDirectory: NodeDirectory {
    func announce(_ node: NodeAnnouncement) throws(LogError) {}
    func nodes() throws(LogError) -> [NodeAnnouncement] { [] }
}
