internal import CRdkafka
internal import ReelCore
internal import ReelLog
internal import Synchronization

/// Messages of one partition, by offset. Their memory belongs to librdkafka and lives as long as this object.
final class KafkaMessages: @unchecked Sendable {
    private let handle: KafkaHandle
    private var messages: [UnsafeMutablePointer<rd_kafka_message_t>] = []

    init(of handle: KafkaHandle) {
        self.handle = handle
    }

    deinit {
        for message in messages { rd_kafka_message_destroy(message) }
    }

    var count: Int { messages.count }

    func append(_ message: UnsafeMutablePointer<rd_kafka_message_t>) {
        messages.append(message)
    }

    /// The records, in order, in librdkafka's memory.
    var entries: [RecordBatch.Entry] { messages.map(RecordBatch.Entry.init(message:)) }
}

extension RecordBatch.Entry {
    /// Creates the record of a message that stays at its address.
    fileprivate init(message: UnsafeMutablePointer<rd_kafka_message_t>) {
        self.init(
            seq: message.pointee.offset,
            witnessIn: message,
            find: Witness.find,
            key: message.key,
            value: message.value
        )
    }
}

extension Witness {
    /// Held while headers are read: librdkafka parses a message's headers at the first access, which is not
    /// thread-safe.
    private static let turn = Mutex(())

    /// Reads header `p` of a message: 16 bytes, seq and hash, big-endian. Any other content means no witness.
    fileprivate static let find: RecordBatch.Entry.WitnessFinder = { message, place in
        let message = message.assumingMemoryBound(to: rd_kafka_message_t.self)
        guard let witness = turn.withLock({ _ in Witness(header: message) }) else { return false }
        place.initializeMemory(as: Witness.self, to: witness)
        return true
    }

    init?(header message: UnsafeMutablePointer<rd_kafka_message_t>) {
        var headers: OpaquePointer?
        guard rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR, let headers else { return nil }
        var bytes: UnsafeRawPointer?
        var size = 0
        guard rd_kafka_header_get_last(headers, "p", &bytes, &size) == RD_KAFKA_RESP_ERR_NO_ERROR, let bytes, size == 16
        else { return nil }
        let seq = Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
        guard seq >= 0 else { return nil }
        self.init(seq: seq, hash: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }
}
