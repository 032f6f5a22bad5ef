import CRdkafka
import ReelCore
import ReelKafka
import ReelLog
import Testing

/// librdkafka's own mock cluster: brokers of this process that speak Kafka on loopback, to other processes as well. It
/// has no Admin API.
final class MockCluster {
    private let handle: OpaquePointer
    private let cluster: OpaquePointer

    /// `HOST:PORT` of each.
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

    /// They claim to be of Kafka 2.3 to 2.6.
    func claimToBeOld() {
        #expect(rd_kafka_mock_set_apiversion(cluster, 1, 0, 11) == RD_KAFKA_RESP_ERR_NO_ERROR)
    }

    /// Makes a log of one partition the current one, with one record of this value in it.
    func makeLog(holding value: String) async throws {
        let current = CurrentLog(epoch: .random(), partitions: 1, number: 0)
        for topic in ["reel.control", "reel.\(current.epoch)"] {
            #expect(rd_kafka_mock_topic_create(cluster, topic, 1, 1) == RD_KAFKA_RESP_ERR_NO_ERROR)
        }
        var configuration = KafkaConfiguration(brokers: brokers, properties: ["fetch.wait.max.ms": "1"])
        configuration.patience = 20
        let store = try KafkaLogStore(configuration) { _, _ in }
        defer { store.close() }
        try store.advance(to: current)
        let log = try store.open(current.epoch)
        defer { log.close() }
        let record = LogAppend(key: Array("s".utf8), value: Array(value.utf8))
        let _: [Seq] = try await withCheckedThrowingContinuation { continuation in
            log.append([record], to: 0) { continuation.resume(with: $0) }
        }
    }
}
