internal import CRdkafka
internal import Glibc
internal import ReelCore
internal import ReelLog
internal import Synchronization

/// Questions to the brokers and what an operator asks of them. Every call blocks, five seconds at most.
final class KafkaAdmin: Sendable {
    let handle: KafkaHandle
    private let heard: Heard
    private let brokers: [String]

    /// What the brokers say of themselves in librdkafka's log lines.
    private final class Heard: Sendable {
        let version = Mutex<BrokerVersion?>(nil)
    }

    /// How long a question may take: five seconds. A broker that hangs is told after four.
    let patienceMs: Int32
    /// So long it asks again for a topic that the broker does not know: one that has just started knows few of them.
    private static let doubtMs: Int64 = 1_500

    init(_ configuration: KafkaConfiguration) throws(LogError) {
        brokers = configuration.brokers
        patienceMs = 5000 * Int32(configuration.patience)
        let heard = Heard()
        var configuration = configuration
        // The lines that tell what requests a broker takes; the rest of them is nobody's business.
        configuration.properties["debug"] = "feature"
        // What goes wrong is told by the answers.
        handle = try KafkaHandle(.reading, configuration) { _, text in
            if let version = BrokerVersion(line: text) {
                // Of several brokers the oldest counts.
                heard.version.withLock { $0 = min($0 ?? version, version) }
            }
        }
        self.heard = heard
    }

    /// The oldest of the brokers that have answered; nil: they did not say, or none has answered.
    var version: BrokerVersion? { heard.version.withLock { $0 } }

    /// Waits until a broker answers, and says how many there are. `log_unavailable` with the reason where none does.
    @discardableResult
    func reach() throws(LogError) -> Int {
        try metadata(of: nil) { Int($0.broker_cnt) }
    }

    /// What one broker says of a topic.
    struct Hearsay {
        /// Nil: it knows no such topic.
        var facts: TopicFacts?
        /// The broker that says it.
        var broker: Int32
        /// All brokers that it knows.
        var brokers: Set<Int32>
    }

    /// The topic of this name; nil: there is none, as was said again and again.
    func topic(_ name: String) throws(LogError) -> TopicFacts? {
        let end = nowMs() + Self.doubtMs
        while true {
            if let facts = try hearsay(of: name).facts { return facts }
            guard nowMs() < end else { return nil }
            usleep(50_000)
        }
    }

    /// The topic of this name, as some broker knows it.
    func hearsay(of name: String) throws(LogError) -> Hearsay {
        let topic = try KafkaTopic(name, of: handle)
        return try metadata(of: topic) { metadata in
            Self.facts(name, in: metadata).map { facts in
                let brokers = UnsafeBufferPointer(start: metadata.brokers, count: Int(metadata.broker_cnt))
                return Hearsay(facts: facts, broker: metadata.orig_broker_id, brokers: Set(brokers.map(\.id)))
            }
        }.get()
    }

    /// The names of all topics that this user may see.
    func topicNames() throws(LogError) -> [String] {
        try metadata(of: nil, all: true) { metadata in
            UnsafeBufferPointer(start: metadata.topics, count: Int(metadata.topic_cnt))
                .compactMap { $0.topic.map { String(cString: $0) } }.sorted()
        }
    }

    /// Whether anything was ever written to a topic.
    func wasWritten(_ name: String) throws(LogError) -> Bool {
        let partitions = try hearsay(of: name).facts?.partitions.count ?? 0
        for partition in 0..<partitions {
            let end = nowMs() + Int64(patienceMs)
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

    /// Asks for the brokers, and for a topic if one is given, or for all; again and again, until one answers or it is
    /// clear that none will.
    private func metadata<Answer>(
        of topic: KafkaTopic?,
        all: Bool = false,
        _ read: (rd_kafka_metadata) -> Answer
    ) throws(LogError) -> Answer {
        let end = nowMs() + Int64(patienceMs)
        while true {
            var answer: UnsafePointer<rd_kafka_metadata>?
            let code = rd_kafka_metadata(handle.pointer, all ? 1 : 0, topic?.pointer, &answer, 500)
            if code == RD_KAFKA_RESP_ERR_NO_ERROR, let answer {
                defer { rd_kafka_metadata_destroy(answer) }
                return read(answer.pointee)
            }
            rd_kafka_poll(handle.pointer, 0)
            if code == RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE {
                throw LogError(
                    .logUnavailable,
                    "what answers is no broker but a controller; expected is a broker's port"
                )
            }
            let trouble = handle.trouble.map { BrokerTrouble($0) }
            guard nowMs() < end, trouble?.isLasting != true else {
                let silence = "\(brokers.joined(separator: ", ")): no answer within \(patienceMs / 1_000) s"
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
    /// A right that this user does not have.
    static func notAllowed(_ operation: String, _ topic: String) -> LogError {
        LogError(
            .forbidden,
            "this user has no right to \(operation) the topic \(topic); expected is an ACL as docs/kafka.md lists them"
        )
    }
}
