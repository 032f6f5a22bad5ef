internal import CRdkafka
internal import ReelCore
internal import ReelLog
internal import Synchronization

/// Appends single records to a topic of one partition, and waits for each.
final class TopicWriter: Sendable {
    private let topic: String
    private let waitMs: Int64
    private let made: Mutex<Made?> = Mutex(nil)
    private let make: @Sendable () throws(LogError) -> Made

    /// The handle is made with the first record: who only reads has none.
    private final class Made: @unchecked Sendable {
        let handle: KafkaHandle
        let topic: KafkaTopic
        let reports: OpaquePointer
        /// How many records were handed over; each carries its number.
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

    /// Appends a record and waits until the brokers have it, five seconds at most, or so long. An error does not say
    /// that it is not in the topic.
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

    /// The outcome of the record that was handed over last. One before it, which nobody waited for to the end, may be
    /// told first.
    private func report(_ writer: Made, _ waitMs: Int64) -> rd_kafka_resp_err_t {
        let end = nowMs() + waitMs
        while nowMs() < end {
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

    /// Gives the connections back; the next record makes them anew.
    func close() {
        made.withLock { $0 = nil }
    }
}
