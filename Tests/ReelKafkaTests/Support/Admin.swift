import CRdkafka
import Testing

/// A client for operations on brokers that an operator or another program performs.
final class Admin {
    private let handle: OpaquePointer
    private let queue: OpaquePointer
    private let reason = UnsafeMutablePointer<CChar>.allocate(capacity: 512)

    /// Connects to the brokers. `properties` are settings of librdkafka.
    init(_ brokers: [String], _ properties: [String: String] = [:]) throws {
        let settings = try #require(rd_kafka_conf_new())
        rd_kafka_conf_set_log_cb(settings) { _, _, _, _ in }
        for (name, value) in properties.merging(
            ["bootstrap.servers": brokers.joined(separator: ",")],
            uniquingKeysWith: { $1 }
        ) {
            try #require(rd_kafka_conf_set(settings, name, value, reason, 512) == RD_KAFKA_CONF_OK)
        }
        handle = try #require(rd_kafka_new(RD_KAFKA_PRODUCER, settings, reason, 512))
        queue = rd_kafka_queue_new(handle)
    }

    deinit {
        rd_kafka_queue_destroy(queue)
        rd_kafka_destroy(handle)
        reason.deallocate()
    }

    /// Creates a topic whose batches may be as large as Reel's.
    func create(_ topic: String, partitions: Int) throws {
        var wanted = rd_kafka_NewTopic_new(topic, Int32(partitions), -1, reason, 512)
        defer { rd_kafka_NewTopic_destroy(wanted) }
        rd_kafka_NewTopic_set_config(wanted, "max.message.bytes", "2097152")
        let options = rd_kafka_AdminOptions_new(handle, RD_KAFKA_ADMIN_OP_CREATETOPICS)
        defer { rd_kafka_AdminOptions_destroy(options) }
        rd_kafka_AdminOptions_set_operation_timeout(options, 60_000, reason, 512)
        rd_kafka_CreateTopics(handle, &wanted, 1, options, queue)
        let event = try answer()
        defer { rd_kafka_event_destroy(event) }
        var count = 0
        let results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count)
        #expect(count == 1 && rd_kafka_topic_result_error(results?[0]) == RD_KAFKA_RESP_ERR_NO_ERROR)
    }

    /// Returns the id of the broker that answers, and the number of partitions of the topic that have a leader as it
    /// knows.
    func known(_ topic: String) throws -> (broker: Int32, led: Int) {
        let asked = rd_kafka_topic_new(handle, topic, nil)
        defer { rd_kafka_topic_destroy(asked) }
        var found: UnsafePointer<rd_kafka_metadata>?
        try #require(rd_kafka_metadata(handle, 0, asked, &found, 60_000) == RD_KAFKA_RESP_ERR_NO_ERROR)
        let answer = try #require(found)
        defer { rd_kafka_metadata_destroy(answer) }
        let description = try #require(answer.pointee.topics?.pointee)
        let partitions = UnsafeBufferPointer(start: description.partitions, count: Int(description.partition_cnt))
        return (answer.pointee.orig_broker_id, partitions.count { $0.leader >= 0 })
    }

    /// Deletes a topic and all its records.
    func delete(_ topic: String) throws {
        var doomed = rd_kafka_DeleteTopic_new(topic)
        defer { rd_kafka_DeleteTopic_destroy(doomed) }
        rd_kafka_DeleteTopics(handle, &doomed, 1, nil, queue)
        let event = try answer()
        defer { rd_kafka_event_destroy(event) }
        var count = 0
        let results = rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count)
        #expect(count == 1 && rd_kafka_topic_result_error(results?[0]) == RD_KAFKA_RESP_ERR_NO_ERROR)
    }

    /// Deletes the records of a partition before an offset.
    func trim(_ topic: String, _ partition: Int32, before offset: Int64) throws {
        let offsets = rd_kafka_topic_partition_list_new(1)
        defer { rd_kafka_topic_partition_list_destroy(offsets) }
        rd_kafka_topic_partition_list_add(offsets, topic, partition).pointee.offset = offset
        var request = rd_kafka_DeleteRecords_new(offsets)
        defer { rd_kafka_DeleteRecords_destroy(request) }
        rd_kafka_DeleteRecords(handle, &request, 1, nil, queue)
        rd_kafka_event_destroy(try answer())
    }

    /// Initializes transactions. The property `transactional.id` must be set.
    func beginTransactions() throws {
        try succeed(rd_kafka_init_transactions(handle, 60_000))
    }

    /// Appends a record in its own transaction. The marker at the end, a commit or an abort, takes an offset too.
    func transaction(_ topic: String, _ partition: Int32, _ value: String, commit: Bool) throws {
        try succeed(rd_kafka_begin_transaction(handle))
        let record = rd_kafka_topic_new(handle, topic, nil)
        defer { rd_kafka_topic_destroy(record) }
        var bytes = Array(value.utf8)
        #expect(rd_kafka_produce(record, partition, RD_KAFKA_MSG_F_COPY, &bytes, bytes.count, "s", 1, nil) == 0)
        // The record must be flushed first, because an abort discards unsent records.
        #expect(rd_kafka_flush(handle, 60_000) == RD_KAFKA_RESP_ERR_NO_ERROR)
        try succeed(commit ? rd_kafka_commit_transaction(handle, 60_000) : rd_kafka_abort_transaction(handle, 60_000))
    }

    private func succeed(_ error: OpaquePointer?) throws {
        guard let error else { return }
        defer { rd_kafka_error_destroy(error) }
        Issue.record("\(String(cString: rd_kafka_error_string(error)))")
        throw CancellationError()
    }

    private func answer() throws -> OpaquePointer {
        while true {
            let event = try #require(rd_kafka_queue_poll(queue, 100_000))
            guard rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR else {
                #expect(rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR_NO_ERROR)
                return event
            }
            rd_kafka_event_destroy(event)
        }
    }
}
