import CRdkafka
import Testing

/// Makes a topic whose batches may be as large as Reel's, and waits until it is there.
func createTopic(_ name: String, partitions: Int, brokers: [String]) throws {
    let reason = UnsafeMutablePointer<CChar>.allocate(capacity: 512)
    defer { reason.deallocate() }
    let properties = try #require(rd_kafka_conf_new())
    rd_kafka_conf_set(properties, "bootstrap.servers", brokers.joined(separator: ","), reason, 512)
    let handle = try #require(rd_kafka_new(RD_KAFKA_PRODUCER, properties, reason, 512))
    defer { rd_kafka_destroy(handle) }
    let queue = rd_kafka_queue_new(handle)
    defer { rd_kafka_queue_destroy(queue) }
    var topic = rd_kafka_NewTopic_new(name, Int32(partitions), -1, reason, 512)
    defer { rd_kafka_NewTopic_destroy(topic) }
    rd_kafka_NewTopic_set_config(topic, "max.message.bytes", "2097152")
    let options = rd_kafka_AdminOptions_new(handle, RD_KAFKA_ADMIN_OP_CREATETOPICS)
    defer { rd_kafka_AdminOptions_destroy(options) }
    rd_kafka_AdminOptions_set_operation_timeout(options, 10_000, reason, 512)
    rd_kafka_CreateTopics(handle, &topic, 1, options, queue)
    let event = try #require(rd_kafka_queue_poll(queue, 30_000))
    defer { rd_kafka_event_destroy(event) }
    #expect(rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR_NO_ERROR)
    var count = 0
    let results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count)
    for index in 0..<count {
        #expect(rd_kafka_topic_result_error(results?[index]) == RD_KAFKA_RESP_ERR_NO_ERROR)
    }
}
