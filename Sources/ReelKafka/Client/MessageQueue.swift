internal import CRdkafka
package import ReelCore

/// What a consumer brings.
package enum Arrival: Sendable {
    case record(Seq)
    /// The log ends before this seq now.
    case end(Seq)
    case error
}

/// Where the messages of a consumer's partitions come, with what its handle has to say; used on one thread.
final class MessageQueue: @unchecked Sendable {
    typealias Message = UnsafeMutablePointer<rd_kafka_message_t>
    typealias Messages = UnsafeMutableBufferPointer<Message?>.SubSequence

    /// It must be there as long as the queue.
    private let handle: KafkaHandle
    private let pointer: OpaquePointer
    private let buffer: UnsafeMutableBufferPointer<Message?>

    /// A queue of which so many messages are taken at once.
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

    /// Reads a partition from this seq on. False if librdkafka does not, and says why in `rd_kafka_last_error`.
    func start(_ topic: KafkaTopic, _ partition: Int, from: Seq) -> Bool {
        rd_kafka_consume_start_queue(topic.pointer, Int32(partition), from, pointer) == 0
    }

    /// Reads a partition no more. What was taken of it before is the caller's to drop.
    func stop(_ topic: KafkaTopic, _ partition: Int) {
        rd_kafka_consume_stop(topic.pointer, Int32(partition))
    }

    /// Waits for a message and takes all that is there with it; none if none came. They are the caller's to destroy,
    /// and the buffer is used again by the next call.
    func take(waitMs: Int32) -> Messages {
        guard let first = rd_kafka_consume_queue(pointer, waitMs) else { return buffer[..<0] }
        buffer[0] = first
        let more = rd_kafka_consume_batch_queue(pointer, 0, buffer.baseAddress! + 1, buffer.count - 1)
        return buffer[...max(0, more)]
    }

    /// Ends a wait, from any thread.
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
