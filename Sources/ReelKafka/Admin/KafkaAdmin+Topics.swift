internal import CRdkafka
internal import Glibc
internal import ReelCore
internal import ReelLog

// Creates, describes and deletes topics by librdkafka's Admin API: each call puts one answer into a queue.
extension KafkaAdmin {
    /// Returns the settings of a topic by name; nil: this user has no right to read them.
    func settings(of topic: String) throws(LogError) -> [String: String]? {
        guard let resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic) else {
            throw LogError(.internal, "librdkafka does not describe topics")
        }
        defer { rd_kafka_ConfigResource_destroy(resource) }
        let answer = try answer("describe the settings of \(topic)") { options, queue in
            var resources: [OpaquePointer?] = [resource]
            rd_kafka_DescribeConfigs(handle.pointer, &resources, 1, options, queue)
        }
        defer { rd_kafka_event_destroy(answer) }
        var count = 0
        guard let resources = rd_kafka_DescribeConfigs_result_resources(answer, &count), count == 1 else { return nil }
        switch rd_kafka_ConfigResource_error(resources[0]) {
        case RD_KAFKA_RESP_ERR_NO_ERROR: break
        case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED: return nil
        case let code: throw LogError(kafka: code, "describe the settings of \(topic)")
        }
        guard let entries = rd_kafka_ConfigResource_configs(resources[0], &count) else { return [:] }
        var settings: [String: String] = [:]
        for entry in UnsafeBufferPointer(start: entries, count: count) {
            guard let name = rd_kafka_ConfigEntry_name(entry), let value = rd_kafka_ConfigEntry_value(entry) else {
                continue
            }
            settings[String(cString: name)] = String(cString: value)
        }
        return settings
    }

    /// Creates a topic. Returns false if there is one of this name already.
    func create(_ topic: String, partitions: Int, replicas: Int, settings: [String: String]) throws(LogError) -> Bool {
        let doing = "create the topic \(topic)"
        guard let new = rd_kafka_NewTopic_new(topic, Int32(clamping: partitions), Int32(clamping: replicas), nil, 0)
        else { throw LogError(.badRequest, "\(partitions) partitions and \(replicas) replicas make no topic") }
        defer { rd_kafka_NewTopic_destroy(new) }
        for (name, value) in settings { rd_kafka_NewTopic_set_config(new, name, value) }
        let answer = try answer(doing) { options, queue in
            var topics: [OpaquePointer?] = [new]
            rd_kafka_CreateTopics(handle.pointer, &topics, 1, options, queue)
        }
        defer { rd_kafka_event_destroy(answer) }
        var count = 0
        guard let results = rd_kafka_CreateTopics_result_topics(answer, &count), count == 1 else {
            throw LogError(.internal, "cannot \(doing): the broker answered nothing")
        }
        switch rd_kafka_topic_result_error(results[0]) {
        case RD_KAFKA_RESP_ERR_NO_ERROR: return true
        case RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS: return false
        case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
            throw .notAllowed("Create", topic)
        case let code:
            let said = rd_kafka_topic_result_error_string(results[0]).map { String(cString: $0) }
            // The broker's text says more than the code: which number, which setting.
            let kind: ErrorCode =
                switch code {
                case RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR, RD_KAFKA_RESP_ERR_INVALID_PARTITIONS,
                    RD_KAFKA_RESP_ERR_INVALID_CONFIG, RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
                    .badRequest
                default: .logUnavailable
                }
            let advice = code == RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR ? " (\(Self.moreBrokers))" : ""
            throw LogError(kind, "cannot \(doing): \(said ?? String(cString: rd_kafka_err2str(code)))\(advice)")
        }
    }

    /// The advice if there are fewer brokers than a topic needs.
    static let moreBrokers =
        "start those that are down, or say with --replication how many brokers shall hold each event"

    /// Deletes a topic that was never used.
    func delete(_ topic: String) throws(LogError) {
        guard let old = rd_kafka_DeleteTopic_new(topic) else { return }
        defer { rd_kafka_DeleteTopic_destroy(old) }
        let answer = try answer("delete the topic \(topic)") { options, queue in
            var topics: [OpaquePointer?] = [old]
            rd_kafka_DeleteTopics(handle.pointer, &topics, 1, options, queue)
        }
        rd_kafka_event_destroy(answer)
    }

    /// Waits for the one answer to a request. The caller must destroy it.
    private func answer(
        _ doing: String,
        _ request: (_ options: OpaquePointer?, _ queue: OpaquePointer?) -> Void
    ) throws(LogError) -> OpaquePointer {
        let queue = rd_kafka_queue_new(handle.pointer)
        defer { rd_kafka_queue_destroy(queue) }
        let options = rd_kafka_AdminOptions_new(handle.pointer, RD_KAFKA_ADMIN_OP_ANY)
        defer { rd_kafka_AdminOptions_destroy(options) }
        rd_kafka_AdminOptions_set_request_timeout(options, patienceMs, nil, 0)
        request(options, queue)
        guard let answer = rd_kafka_queue_poll(queue, patienceMs + 1000) else {
            throw LogError(.logUnavailable, "cannot \(doing): no answer within \(patienceMs / 1000) s")
        }
        let code = rd_kafka_event_error(answer)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
            defer { rd_kafka_event_destroy(answer) }
            let said = rd_kafka_event_error_string(answer).map { String(cString: $0) } ?? ""
            throw LogError(.logUnavailable, "cannot \(doing): \(said)")
        }
        return answer
    }
}
