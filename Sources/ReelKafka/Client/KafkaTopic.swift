internal import CRdkafka
internal import ReelLog

/// A topic as a handle knows it.
final class KafkaTopic: @unchecked Sendable {
    let handle: KafkaHandle
    let name: String
    let pointer: OpaquePointer

    init(_ name: String, of handle: KafkaHandle) throws(LogError) {
        guard let pointer = rd_kafka_topic_new(handle.pointer, name, nil) else {
            throw LogError(kafka: rd_kafka_last_error(), "use the topic \(name)")
        }
        self.handle = handle
        self.name = name
        self.pointer = pointer
    }

    deinit {
        rd_kafka_topic_destroy(pointer)
    }
}
