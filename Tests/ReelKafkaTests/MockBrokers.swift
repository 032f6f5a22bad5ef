import CRdkafka
import EventLogConformance
import ReelCore
import ReelKafka
import ReelLog
import TestSupport
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

    /// A topic as `reel topic create` would make it.
    func topic(_ name: String, partitions: Int = 1) {
        #expect(rd_kafka_mock_topic_create(cluster, name, Int32(partitions), 1) == RD_KAFKA_RESP_ERR_NO_ERROR)
    }

    /// The brokers claim to take Fetch up to this version.
    func claim(fetch version: Int16) {
        #expect(rd_kafka_mock_set_apiversion(cluster, 1, 0, version) == RD_KAFKA_RESP_ERR_NO_ERROR)
    }

    /// How a client talks to these brokers. It waits for them as long as a busy machine may hold them up: what it gave
    /// up and sent again, they would take twice.
    var configuration: KafkaConfiguration {
        var configuration = KafkaConfiguration(
            brokers: brokers,
            properties: [
                "fetch.wait.max.ms": "1", "socket.timeout.ms": "300000", "request.timeout.ms": "300000",
            ]
        )
        configuration.patience = 20
        return configuration
    }

    /// A producer that waits for each answer. The mock checks no sequence numbers: it would take a request behind one
    /// that failed, and librdkafka would believe the failed one to be in the log.
    var oneRequestAtATime: KafkaConfiguration {
        var configuration = configuration
        configuration.properties["max.in.flight.requests.per.connection"] = "1"
        return configuration
    }

    /// A kind of request, by its number in Kafka's protocol.
    enum Request: Int16 {
        case produce = 0, fetch, ends
        case producerId = 22
    }

    /// The next requests of this kind fail, one with each of these errors. `RD_KAFKA_RESP_ERR__TRANSPORT` drops the
    /// connection in place of an answer.
    func fail(_ request: Request, _ errors: rd_kafka_resp_err_t...) {
        rd_kafka_mock_push_request_errors_array(cluster, request.rawValue, errors.count, errors)
    }

    /// Requests of this kind succeed again.
    func clear(_ request: Request) {
        rd_kafka_mock_clear_request_errors(cluster, request.rawValue)
    }

    /// All connections are closed, and none is taken. `broker` −1: all.
    func down(_ broker: Int32 = -1) { rd_kafka_mock_broker_set_down(cluster, broker) }

    /// Connections are taken again.
    func up(_ broker: Int32 = -1) { rd_kafka_mock_broker_set_up(cluster, broker) }

    /// Answers take so long. `broker` −1: those of all.
    func delay(ms: Int32, of broker: Int32 = -1) { rd_kafka_mock_broker_set_rtt(cluster, broker, ms) }

    /// The next request of this kind is done at once, and answered after so long.
    func answerLate(_ request: Request, ms: Int32, of broker: Int32 = 1) {
        #expect(reel_rd_kafka_mock_delay(cluster, broker, request.rawValue, ms) == RD_KAFKA_RESP_ERR_NO_ERROR)
    }

    /// What brokers that are asked say of the log's topic from now on.
    func say(_ error: rd_kafka_resp_err_t, of log: KafkaLog) {
        say(error, ofTopic: "reel.\(log.epoch)")
    }

    /// The brokers say that there is no such topic; else they would make it for whoever asks.
    func hide(_ topic: String) {
        self.topic(topic)
        say(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, ofTopic: topic)
    }

    /// What brokers that are asked say of a topic from now on.
    func say(_ error: rd_kafka_resp_err_t, ofTopic name: String) {
        rd_kafka_mock_topic_set_error(cluster, name, error)
    }

    /// Another broker leads the partition; −1: none does.
    func lead(_ log: KafkaLog, _ partition: Int32, by broker: Int32) {
        rd_kafka_mock_partition_set_leader(cluster, "reel.\(log.epoch)", partition, broker)
    }

    /// Reads of the partition are served by this broker, which has it up to before `end`; nil: as far as its leader.
    func follow(_ log: KafkaLog, _ partition: Int32, by broker: Int32, before end: Seq?) {
        rd_kafka_mock_partition_set_follower(cluster, "reel.\(log.epoch)", partition, broker)
        rd_kafka_mock_partition_set_follower_wmarks(cluster, "reel.\(log.epoch)", partition, -1, end ?? -1)
    }

    /// A log in a topic of its own. `leaderless`: nobody leads this partition yet, so no producer has ever sent to it.
    func log(
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
}

extension KafkaLog {
    /// Appends as soon as the log takes it.
    @discardableResult
    func appendOnceItGoes(_ text: String) async throws -> [Seq] {
        var seqs: [Seq] = []
        try await eventually("the log takes an append") {
            do {
                seqs = try await append([LogAppend("s", text)])
                return true
            } catch let error as LogError {
                #expect([.logUnavailable, .forbidden].contains(error.code))
                return false
            }
        }
        return seqs
    }
}

/// The mock cluster knows no topic of announcements.
final class NoDirectory: NodeDirectory {
    func announce(_ node: NodeAnnouncement) throws(LogError) {}
    func nodes() throws(LogError) -> [NodeAnnouncement] { [] }
}
