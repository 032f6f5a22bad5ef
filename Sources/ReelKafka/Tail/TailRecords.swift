internal import CRdkafka
internal import ReelCore
internal import ReelLog

/// Makes batches of what a tail brings. The bytes are copied: a gateway keeps what it has read last for long, and kept
/// in librdkafka's memory a record would keep its whole fetch, and some 500 bytes of librdkafka's own, from being used
/// again.
enum TailRecords {
    /// Only so many records from the ends of a batch on are asked for their witness, which takes longer than the rest:
    /// who checks looks at the ends.
    private static let witnesses = 16

    /// Takes the messages over, which follow each other from `first` on.
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
            let isNearAnEnd = min(entries.count, messages.count - 1 - entries.count) < witnesses
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
