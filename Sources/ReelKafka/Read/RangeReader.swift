internal import CRdkafka
internal import ReelBase
internal import ReelCore
internal import ReelLog

/// A handle that reads one range at a time, on the thread of the caller.
final class RangeReader: @unchecked Sendable {
    private let handle: KafkaHandle
    private let topic: KafkaTopic
    private let queue: MessageQueue

    /// The time without a message after which the reader checks that the partition exists, in milliseconds.
    private static let silenceMs: Int64 = 500

    /// The messages of one read. Offsets below `end` without a message did not exist.
    struct Reading {
        var messages: KafkaMessages
        var end: Seq
    }

    init(topic: String, configuration: KafkaConfiguration, log: @escaping KafkaLogLine) throws(LogError) {
        handle = try KafkaHandle(.reading, configuration, log: log)
        self.topic = try KafkaTopic(topic, of: handle)
        queue = MessageQueue(of: handle, messagesMax: 1024)
    }

    /// Returns the range from the first offset kept to the next offset, as the leader reports them.
    func ends(_ partition: Int, untilMs: Int64) throws(KafkaFailure) -> Range<Seq> {
        let (code, ends) = handle.ends(of: topic.name, partition, untilMs: untilMs)
        if code == RD_KAFKA_RESP_ERR_NO_ERROR { return ends }
        let doing = "ask for the ends of partition \(partition)"
        guard code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION else {
            throw KafkaFailure(code, doing, handle, topic: topic.name)
        }
        // librdkafka also returns this code if all brokers are away, so a broker is asked for its metadata.
        try checkPartitionExists(partition, doing, untilMs: untilMs)
        throw KafkaFailure(.away, LogError(kafka: code, doing, trouble: handle.trouble))
    }

    /// Throws if the log continues at or after `seq`, where a read has found its end. A broker that lags
    /// answers a read with its own end: a new leader for a moment, or a follower.
    func expectEnd(of partition: Int, at seq: Seq, untilMs: Int64) throws(KafkaFailure) {
        let end = try ends(partition, untilMs: untilMs).upperBound
        guard end > seq else { return }
        let message =
            "partition \(partition) was read up to seq \(seq - 1), its last one is \(end - 1): a broker lags behind"
        throw KafkaFailure(.away, LogError(.logUnavailable, message))
    }

    /// Throws if the partition does not exist. A consumer of a topic that is gone receives neither messages nor errors.
    private func checkPartitionExists(_ partition: Int, _ doing: String, untilMs: Int64) throws(KafkaFailure) {
        var found: UnsafePointer<rd_kafka_metadata>?
        let leftMs = Int32(clamping: max(1, untilMs - MonotonicClock.nowMs()))
        let code = rd_kafka_metadata(handle.pointer, 0, topic.pointer, &found, leftMs)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let found else {
            throw KafkaFailure(code, doing, handle, topic: topic.name)
        }
        defer { rd_kafka_metadata_destroy(found) }
        guard found.pointee.topic_cnt == 1, let topic = found.pointee.topics?.pointee else { return }
        guard topic.err == RD_KAFKA_RESP_ERR_NO_ERROR, partition < Int(topic.partition_cnt) else {
            let code = topic.err == RD_KAFKA_RESP_ERR_NO_ERROR ? RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION : topic.err
            throw KafkaFailure(code, doing, handle, topic: self.topic.name)
        }
    }

    /// Reads records from `from` to `to`, or to the end of the log.
    ///
    /// - Parameters:
    ///   - partition: The partition's number.
    ///   - from: The first seq.
    ///   - to: The last seq.
    ///   - bytes: The approximate limit of the range. It has at least one record if there is one.
    ///   - untilMs: The deadline, by `nowMs`.
    /// - Throws: The failure, if nothing is complete by then.
    func read(
        _ partition: Int,
        from: Seq,
        to: Seq,
        bytes: Int,
        untilMs: Int64
    ) throws(KafkaFailure) -> Reading {
        let doing = "read partition \(partition) from seq \(from) on"
        guard queue.start(topic, partition, from: from) else {
            throw KafkaFailure(rd_kafka_last_error(), doing, handle, topic: topic.name)
        }
        defer { queue.stop(topic, partition) }
        let gathered = KafkaMessages(of: handle)
        var range = RangeGathering(next: from, to: to, bytes: bytes)
        while true {
            let leftMs = untilMs - MonotonicClock.nowMs()
            guard leftMs > 0 else { throw KafkaFailure(RD_KAFKA_RESP_ERR__TIMED_OUT, doing, handle, topic: topic.name) }
            let messages = queue.take(waitMs: Int32(clamping: min(leftMs, Self.silenceMs)))
            if messages.isEmpty { try checkPartitionExists(partition, doing, untilMs: untilMs) }
            var failure: rd_kafka_resp_err_t?
            for case let message? in messages {
                switch range.take(message.arrival, bytes: message.pointee.len + message.pointee.key_len) {
                case .keep:
                    gathered.append(message)
                    continue
                case .fail: failure = message.pointee.err
                case .drop: break
                }
                rd_kafka_message_destroy(message)
            }
            if let failure { throw KafkaFailure(failure, doing, handle, topic: topic.name) }
            if range.isComplete { return Reading(messages: gathered, end: range.next) }
        }
    }
}
