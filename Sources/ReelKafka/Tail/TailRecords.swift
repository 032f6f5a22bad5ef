internal import CRdkafka
internal import ReelCore
internal import ReelLog

/// Makes batches of a tail's messages. The bytes are copied, because a gateway keeps recent records for a long time. In
/// librdkafka's memory one kept record would hold its whole fetch, and about 500 bytes of librdkafka's own.
enum TailRecords {
    /// How many records at each end of a batch get their witness, which is slower to read than the rest. Verifiers use
    /// only the ends.
    private static let witnessesPerEnd = 16

    /// Takes ownership of messages that follow each other from seq `first` on, and returns them as a batch.
    static func batch(_ partition: Int, from first: Seq, _ messages: MessageQueue.Messages) -> RecordBatch {
        let count = messages.reduce(0) { $0 + ($1.map { $0.key.count + $0.value.count } ?? 0) }
        let memory = UnsafeMutableRawPointer.allocate(byteCount: max(1, count), alignment: 1)
        var free = memory
        func copy(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
            guard let base = bytes.baseAddress else { return bytes }
            free.copyMemory(from: base, byteCount: bytes.count)
            defer { free += bytes.count }
            return UnsafeRawBufferPointer(start: free, count: bytes.count)
        }
        var entries: [RecordBatch.Entry] = []
        entries.reserveCapacity(messages.count)
        for case let message? in messages {
            let isNearAnEnd = min(entries.count, messages.count - 1 - entries.count) < witnessesPerEnd
            entries.append(
                RecordBatch.Entry(
                    seq: message.pointee.offset,
                    witness: isNearAnEnd ? Witness(header: message) : nil,
                    key: copy(message.key),
                    value: copy(message.value)
                )
            )
            rd_kafka_message_destroy(message)
        }
        let seqs = first..<first + Seq(entries.count)
        return RecordBatch(partition: partition, seqs: seqs, entries: entries) { memory.deallocate() }
    }
}
