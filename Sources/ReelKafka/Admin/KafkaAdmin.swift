internal import CRdkafka
internal import ReelBase
internal import ReelCore
internal import ReelLog
internal import Synchronization

/// Sends questions and administrative requests to the brokers. Every call blocks for at most five seconds, or eight if
/// each broker is asked.
final class KafkaAdmin: Sendable {
    let handle: KafkaHandle
    let configuration: KafkaConfiguration
    private let heard: Heard

    /// The brokers' versions from librdkafka's log lines, by address.
    private final class Heard: Sendable {
        let versions = Mutex<[String: BrokerVersion]>([:])
    }

    /// The timeout of a question in milliseconds: five seconds. A broker that hangs is reported after four.
    let patienceMs: Int32

    /// Creates the handle. With `isConnectedToAll` it connects to all brokers, so that each question goes to any of
    /// them; else only to the brokers that it needs.
    init(_ configuration: KafkaConfiguration, isConnectedToAll: Bool = false) throws(LogError) {
        self.configuration = configuration
        patienceMs = 5000 * Int32(configuration.patience)
        let heard = Heard()
        var configuration = configuration
        if isConnectedToAll { configuration.properties["enable.sparse.connections"] = "false" }
        // These lines list the requests that a broker accepts. All others are ignored.
        configuration.properties["debug"] = "feature"
        // Errors are reported by the answers.
        handle = try KafkaHandle(.reading, configuration) { _, _, text in
            if let version = BrokerVersion(line: text) {
                heard.versions.withLock { $0[version.broker] = version }
            }
        }
        self.heard = heard
    }

    /// The versions of the brokers that have answered, sorted by address. Only for brokers that report the version of
    /// Fetch.
    var versions: [BrokerVersion] {
        heard.versions.withLock { $0.values.sorted { $0.broker < $1.broker } }
    }

    /// An answer of one broker.
    struct TopicMetadata<Said> {
        var said: Said
        /// The broker that has answered.
        var broker: Int32
        /// All brokers that it knows.
        var brokers: Set<Int32>
    }

    /// Returns the topic of this name, as any one broker knows it; nil: that broker knows no such topic.
    func hearsay(of name: String) throws(LogError) -> TopicMetadata<TopicFacts?> {
        let topic = try KafkaTopic(name, of: handle)
        let heard = try metadata(of: topic) { Self.facts(name, in: $0) }
        return TopicMetadata(said: try heard.said.get(), broker: heard.broker, brokers: heard.brokers)
    }

    /// True if anything was ever written to a topic.
    func wasWritten(_ name: String) throws(LogError) -> Bool {
        let partitions = try topic(name)?.partitions.count ?? 0
        for partition in 0..<partitions {
            let end = MonotonicClock.nowMs() + Int64(patienceMs)
            let (code, ends) = handle.ends(of: name, partition, untilMs: end)
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
                throw LogError(kafka: code, "ask for the end of \(name)", trouble: handle.trouble)
            }
            if ends.upperBound > 0 { return true }
        }
        return false
    }

    private static func facts(_ name: String, in metadata: rd_kafka_metadata) -> Result<TopicFacts?, LogError> {
        guard metadata.topic_cnt == 1, let found = metadata.topics?[0] else { return .success(nil) }
        switch found.err {
        case RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE: break
        case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART: return .success(nil)
        case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED: return .failure(.notAllowed("Describe", name))
        default: return .failure(LogError(kafka: found.err, "describe the topic \(name)"))
        }
        let partitions = UnsafeBufferPointer(start: found.partitions, count: Int(found.partition_cnt))
        return .success(TopicFacts(name: name, partitions: partitions.sorted { $0.id < $1.id }.map(\.facts)))
    }

    /// Asks for the brokers, and for `topic`, or for all topics. Retries until one broker answers.
    ///
    /// - Throws: `log_unavailable` with the reason, at the timeout or once it is clear that no broker will answer.
    func metadata<Said>(
        of topic: KafkaTopic?,
        all: Bool = false,
        _ read: (rd_kafka_metadata) -> Said
    ) throws(LogError) -> TopicMetadata<Said> {
        let end = MonotonicClock.nowMs() + Int64(patienceMs)
        while true {
            var answer: UnsafePointer<rd_kafka_metadata>?
            let code = rd_kafka_metadata(handle.pointer, all ? 1 : 0, topic?.pointer, &answer, 500)
            if code == RD_KAFKA_RESP_ERR_NO_ERROR, let answer {
                defer { rd_kafka_metadata_destroy(answer) }
                let metadata = answer.pointee
                let brokers = UnsafeBufferPointer(start: metadata.brokers, count: Int(metadata.broker_cnt))
                return TopicMetadata(
                    said: read(metadata),
                    broker: metadata.orig_broker_id,
                    brokers: Set(brokers.map(\.id))
                )
            }
            rd_kafka_poll(handle.pointer, 0)
            if code == RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE {
                throw LogError(
                    .logUnavailable,
                    "what answers is no broker but a controller; expected is a broker's port"
                )
            }
            let trouble = handle.trouble.map { BrokerTrouble($0) }
            guard MonotonicClock.nowMs() < end, trouble?.isLasting != true else {
                let asked = configuration.brokers.joined(separator: ", ")
                let silence = "\(asked): no answer within \(patienceMs / 1_000) s"
                throw LogError(.logUnavailable, "no broker can be reached: \(trouble?.text ?? silence)")
            }
        }
    }
}

extension rd_kafka_metadata_partition {
    fileprivate var facts: TopicFacts.Partition {
        TopicFacts.Partition(leader: leader < 0 ? nil : Int(leader), replicas: Int(replica_cnt), inSync: Int(isr_cnt))
    }
}

extension LogError {
    /// Returns the error for a right that this user does not have.
    static func notAllowed(_ operation: String, _ topic: String) -> LogError {
        LogError(
            .forbidden,
            "this user has no right to \(operation) the topic \(topic);"
                + " expected is an ACL as docs/operations/kafka.md lists them"
        )
    }
}
