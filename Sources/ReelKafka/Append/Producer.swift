internal import CRdkafka
internal import ReelLog

/// An idempotent producer of librdkafka.
final class Producer: @unchecked Sendable {
    let handle: KafkaHandle
    /// The queue of its reports and errors.
    let queue: OpaquePointer
    private let topic: KafkaTopic
    /// True after a fatal error. Used only on the appender's thread, like the next two.
    var isFatal = false
    /// True if the brokers have refused one of its batches as too large.
    var isOutgrown = false
    /// True if the brokers have accepted one of its records.
    var hasDelivered = false

    init(_ topic: String, _ configuration: KafkaConfiguration, _ log: @escaping KafkaLogLine) throws(LogError) {
        handle = try KafkaHandle(.producer, configuration, log: log)
        self.topic = try KafkaTopic(topic, of: handle)
        queue = rd_kafka_queue_get_main(handle.pointer)
    }

    deinit {
        rd_kafka_queue_destroy(queue)
    }

    /// Queues one record; its bytes are copied.
    func produce(_ record: LogAppend, to partition: Int, opaque: UnsafeMutableRawPointer) -> rd_kafka_resp_err_t {
        record.key.withUnsafeBytes { key in
            record.value.withUnsafeBytes { value in
                guard let witness = record.witness else { return produce(key, value, nil, partition, opaque) }
                let p = (witness.seq.bigEndian, witness.hash.bigEndian)
                return withUnsafeBytes(of: p) { produce(key, value, $0.baseAddress, partition, opaque) }
            }
        }
    }

    private func produce(
        _ key: UnsafeRawBufferPointer,
        _ value: UnsafeRawBufferPointer,
        _ p: UnsafeRawPointer?,
        _ partition: Int,
        _ opaque: UnsafeMutableRawPointer
    ) -> rd_kafka_resp_err_t {
        reel_rd_kafka_produce(
            handle.pointer,
            topic.pointer,
            Int32(partition),
            key.baseAddress,
            key.count,
            value.baseAddress,
            value.count,
            p,
            opaque
        )
    }

    /// The error for the right without which the brokers refuse the producer; nil: it lacks none.
    var refusal: LogError? {
        rd_kafka_fatal_error(handle.pointer, nil, 0) == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED
            ? .notAllowed("Write", topic.name) : nil
    }

    /// Makes all records in flight fail.
    func purge() {
        rd_kafka_purge(handle.pointer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT)
    }

    /// Wakes the thread that waits for events.
    func wake() {
        rd_kafka_queue_yield(queue)
    }
}
