import CRdkafka
import ReelCore
import ReelKafka
import ReelLog
import Testing

/// librdkafka's own mock cluster. Its brokers live in this process and serve Kafka on the loopback, also to other
/// processes. It has no Admin API.
final class MockCluster {
    private let handle: OpaquePointer
    private let cluster: OpaquePointer

    /// The `HOST:PORT` of each broker.
    let brokers: [String]

    init(brokers count: Int32) throws {
        let reason = UnsafeMutablePointer<CChar>.allocate(capacity: 512)
        defer { reason.deallocate() }
        let properties = try #require(rd_kafka_conf_new())
        rd_kafka_conf_set_log_cb(properties) { _, _, _, _ in }
        handle = try #require(rd_kafka_new(RD_KAFKA_PRODUCER, properties, reason, 512))
        cluster = try #require(rd_kafka_mock_cluster_new(handle, count))
        brokers = String(cString: rd_kafka_mock_cluster_bootstraps(cluster)).split(separator: ",").map(String.init)
    }

    deinit {
        rd_kafka_mock_cluster_destroy(cluster)
        rd_kafka_destroy(handle)
    }

    /// Makes the brokers report the versions of Kafka 2.3 to 2.6.
    func claimToBeOld() {
        #expect(rd_kafka_mock_set_apiversion(cluster, 1, 0, 11) == RD_KAFKA_RESP_ERR_NO_ERROR)
    }

    /// Delays each answer by this time.
    func answerAfter(ms: Int32) {
        #expect(rd_kafka_mock_broker_set_rtt(cluster, -1, ms) == RD_KAFKA_RESP_ERR_NO_ERROR)
    }

    /// Ends the producer of the next records with a fatal error: its sequence numbers are out of order.
    func endTheProducer() {
        rd_kafka_mock_push_request_errors_array(cluster, 0, 1, [RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER])
    }

    /// Creates a log, makes it the current one, and opens it. No node announces itself on it.
    func makeLog(partitions: Int = 1, lines: @escaping KafkaLogLine = { _, _, _ in }) throws -> KafkaLog {
        let current = CurrentLog(epoch: .random(), partitions: partitions, number: 0)
        let topic = "reel.\(current.epoch)"
        for (name, count) in [("reel.control", 1), (topic, partitions)] {
            #expect(rd_kafka_mock_topic_create(cluster, name, Int32(count), 1) == RD_KAFKA_RESP_ERR_NO_ERROR)
        }
        // The mock accepts a record twice, and accepts requests after one that it has
        // refused. These settings prevent both.
        var configuration = KafkaConfiguration(
            brokers: brokers,
            properties: [
                "fetch.wait.max.ms": "1", "socket.timeout.ms": "300000", "request.timeout.ms": "300000",
                "max.in.flight.requests.per.connection": "1",
            ]
        )
        configuration.patience = 20
        let store = try KafkaLogStore(configuration) { _, _, _ in }
        defer { store.close() }
        try store.advance(to: current)
        return try KafkaLog(
            epoch: current.epoch,
            partitions: partitions,
            topic: topic,
            configuration: configuration,
            directory: NoDirectory(),
            log: lines
        )
    }
}

/// A directory without nodes.
private final class NoDirectory: NodeDirectory {
    func announce(_ node: NodeAnnouncement) throws(LogError) {}
    func nodes() throws(LogError) -> [NodeAnnouncement] { [] }
}
