internal import CRdkafka
internal import ReelBase
internal import ReelCore
internal import ReelLog
internal import Synchronization

/// Appends single records to a topic of one partition, and waits for each.
final class TopicWriter: Sendable {
    private let topic: String
    private let waitMs: Int64
    private let made: Mutex<Made?> = Mutex(nil)
    private let make: @Sendable () throws(LogError) -> Made

    /// The handle, topic and queue. They are created with the first record, so a process that only reads has none.
    private final class Made: @unchecked Sendable {
        let handle: KafkaHandle
        let topic: KafkaTopic
        let reports: OpaquePointer
        /// The number of records that were produced. Each carries its number.
        var sent = 0

        init(_ name: String, _ configuration: KafkaConfiguration, _ log: @escaping KafkaLogLine) throws(LogError) {
            handle = try KafkaHandle(.telling, configuration, log: log)
            topic = try KafkaTopic(name, of: handle)
            reports = rd_kafka_queue_get_main(handle.pointer)
        }

        deinit {
            rd_kafka_queue_destroy(reports)
        }
    }

    init(topic: String, configuration: KafkaConfiguration, log: @escaping KafkaLogLine) {
        self.topic = topic
        waitMs = 6000 * Int64(configuration.patience)
        make = { () throws(LogError) in try Made(topic, configuration, log) }
    }

    /// Appends a record and waits until the brokers have it. After an error the record may still be in the topic.
    ///
    /// - Parameter waitMs: The timeout in milliseconds; nil: 6 s, by which time librdkafka has given up a record that
    ///   the brokers do not accept (`message.timeout.ms`: 4.5 s). Both are multiplied by `patience`.
    func append(key: [UInt8], value: [UInt8], waitMs: Int64? = nil) throws(LogError) {
        try made.withLock { made throws(LogError) in
            let writer = if let made { made } else { try make() }
            made = writer
            writer.sent += 1
            var code = key.withUnsafeBytes { key in
                value.withUnsafeBytes { value in
                    reel_rd_kafka_produce(
                        writer.handle.pointer,
                        writer.topic.pointer,
                        0,
                        key.baseAddress,
                        key.count,
                        value.baseAddress,
                        value.count,
                        nil,
                        UnsafeMutableRawPointer(bitPattern: writer.sent)
                    )
                }
            }
            if code == RD_KAFKA_RESP_ERR_NO_ERROR { code = report(writer, waitMs ?? self.waitMs) }
            switch code {
            case RD_KAFKA_RESP_ERR_NO_ERROR: return
            case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED: throw .notAllowed("Write", topic)
            default:
                let trouble = writer.handle.trouble.map { BrokerTrouble($0).text }
                throw LogError(kafka: code, "append to the topic \(topic)", trouble: trouble)
            }
        }
    }

    /// Waits for the result of the record that was produced last. Results of earlier records, for which the wait timed
    /// out, may arrive first and are ignored.
    private func report(_ writer: Made, _ waitMs: Int64) -> rd_kafka_resp_err_t {
        let end = MonotonicClock.nowMs() + waitMs
        while MonotonicClock.nowMs() < end {
            guard let event = rd_kafka_queue_poll(writer.reports, 500) else { continue }
            defer { rd_kafka_event_destroy(event) }
            switch rd_kafka_event_type(event) {
            case RD_KAFKA_EVENT_DR:
                while let message = rd_kafka_event_message_next(event) {
                    if Int(bitPattern: message.pointee._private) == writer.sent { return message.pointee.err }
                }
            case RD_KAFKA_EVENT_ERROR:
                let reason = rd_kafka_event_error_string(event).map { String(cString: $0) } ?? ""
                writer.handle.heard(rd_kafka_event_error(event), reason)
            default: break
            }
        }
        return RD_KAFKA_RESP_ERR__MSG_TIMED_OUT
    }

    /// Closes the connections; the next record opens new ones.
    func close() {
        made.withLock { $0 = nil }
    }
}
