internal import CRdkafka
package import ReelCore

/// A message of a consumer.
package enum Arrival: Sendable {
    case record(Seq)
    /// The log ends before this seq now.
    case end(Seq)
    case error
}

/// The queue of a consumer's messages from all its partitions, and of its handle's events. Used on one thread.
final class MessageQueue: @unchecked Sendable {
    typealias Message = UnsafeMutablePointer<rd_kafka_message_t>
    typealias Messages = UnsafeMutableBufferPointer<Message?>.SubSequence

    /// Kept alive as long as the queue.
    private let handle: KafkaHandle
    private let pointer: OpaquePointer
    private let buffer: UnsafeMutableBufferPointer<Message?>

    /// Creates a queue. `messagesMax`: messages per call of `take`.
    init(of handle: KafkaHandle, messagesMax: Int) {
        self.handle = handle
        pointer = rd_kafka_queue_new(handle.pointer)
        let main = rd_kafka_queue_get_main(handle.pointer)
        rd_kafka_queue_forward(main, pointer)
        rd_kafka_queue_destroy(main)
        buffer = .allocate(capacity: messagesMax)
        buffer.initialize(repeating: nil)
    }

    deinit {
        rd_kafka_queue_destroy(pointer)
        buffer.deallocate()
    }

    /// Starts to read a partition at seq `from`. Returns false if librdkafka refuses; `rd_kafka_last_error` has the
    /// reason.
    func start(_ topic: KafkaTopic, _ partition: Int, from: Seq) -> Bool {
        rd_kafka_consume_start_queue(topic.pointer, Int32(partition), from, pointer) == 0
    }

    /// Stops reading a partition. The caller must drop the messages of it that were taken before.
    func stop(_ topic: KafkaTopic, _ partition: Int) {
        rd_kafka_consume_stop(topic.pointer, Int32(partition))
    }

    /// Waits up to `waitMs` milliseconds for a message, and returns it with all others that are there; empty if none
    /// came. The caller must destroy the messages. The next call reuses the buffer.
    func take(waitMs: Int32) -> Messages {
        guard let first = rd_kafka_consume_queue(pointer, waitMs) else { return buffer[..<0] }
        buffer[0] = first
        let more = rd_kafka_consume_batch_queue(pointer, 0, buffer.baseAddress! + 1, buffer.count - 1)
        return buffer[...max(0, more)]
    }

    /// Ends a wait. From any thread.
    func wake() {
        rd_kafka_queue_yield(pointer)
    }
}

extension MessageQueue.Message {
    var key: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: pointee.key, count: pointee.key_len) }
    var value: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: pointee.payload, count: pointee.len) }

    var arrival: Arrival {
        switch pointee.err {
        case RD_KAFKA_RESP_ERR_NO_ERROR: .record(pointee.offset)
        case RD_KAFKA_RESP_ERR__PARTITION_EOF: .end(pointee.offset)
        default: .error
        }
    }
}
