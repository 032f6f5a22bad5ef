internal import CRdkafka
internal import ReelCore
internal import ReelLog

/// A handle that reads one range at a time, on the thread of the caller.
final class RangeReader: @unchecked Sendable {
    private let handle: KafkaHandle
    private let topic: KafkaTopic
    private let queue: MessageQueue

    /// After so long without an answer it is asked whether the partition is there at all.
    private static let silenceMs: Int64 = 500

    /// What was read once. Offsets below `end` without a message were not there.
    struct Reading {
        var messages: KafkaMessages
        var end: Seq
    }

    init(topic: String, configuration: KafkaConfiguration, log: @escaping KafkaLogLine) throws(LogError) {
        handle = try KafkaHandle(.reading, configuration, log: log)
        self.topic = try KafkaTopic(topic, of: handle)
        queue = MessageQueue(of: handle, messagesMax: 1024)
    }

    /// The first offset kept and the one that will be given next, as the leader says.
    func ends(_ partition: Int, untilMs: Int64) throws(KafkaFailure) -> Range<Seq> {
        let (code, ends) = handle.ends(of: topic.name, partition, untilMs: untilMs)
        if code == RD_KAFKA_RESP_ERR_NO_ERROR { return ends }
        let doing = "ask for the ends of partition \(partition)"
        guard code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION else {
            throw KafkaFailure(code, doing, handle, topic: topic.name)
        }
        // librdkafka returns this code also if all brokers are away, so a broker is asked for its metadata.
        try lookForLeader(partition, doing, untilMs: untilMs)
        throw KafkaFailure(.away, LogError(kafka: code, doing, trouble: handle.trouble))
    }

    /// A broker that lags behind the others, a new leader for a moment or a follower, answers a read with its own end.
    /// Throws where the log goes on behind that.
    func expectEnd(of partition: Int, at seq: Seq, untilMs: Int64) throws(KafkaFailure) {
        let end = try ends(partition, untilMs: untilMs).upperBound
        guard end > seq else { return }
        let message =
            "partition \(partition) was read up to seq \(seq - 1), its last one is \(end - 1): a broker lags behind"
        throw KafkaFailure(.away, LogError(.logUnavailable, message))
    }

    /// A consumer whose topic is gone waits in silence; so this throws where there is no such partition.
    private func lookForLeader(_ partition: Int, _ doing: String, untilMs: Int64) throws(KafkaFailure) {
        var found: UnsafePointer<rd_kafka_metadata>?
        let leftMs = Int32(clamping: max(1, untilMs - nowMs()))
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

    /// Reads `from ... to`, about so many bytes, at least one record where there is one; ends at the log's end.
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
            let leftMs = untilMs - nowMs()
            guard leftMs > 0 else { throw KafkaFailure(RD_KAFKA_RESP_ERR__TIMED_OUT, doing, handle, topic: topic.name) }
            let messages = queue.take(waitMs: Int32(clamping: min(leftMs, Self.silenceMs)))
            if messages.isEmpty { try lookForLeader(partition, doing, untilMs: untilMs) }
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
