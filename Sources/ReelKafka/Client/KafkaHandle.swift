internal import CRdkafka
internal import Glibc
internal import ReelCore
internal import ReelLog
internal import Synchronization

/// Called with the log lines of librdkafka, from any thread.
///
/// - Parameters:
///   - level: The syslog level, from 3 (error) to 7 (debug).
///   - facility: The facility, such as `FAIL`.
///   - text: The text, which may contain what a broker has sent.
public typealias KafkaLogLine = @Sendable (_ level: Int32, _ facility: String, _ text: String) -> Void

/// A handle of librdkafka, with its threads and its connections to the brokers. When the last reference is dropped, the
/// handle is destroyed on a separate thread. So batches of its memory may be dropped on any thread.
package final class KafkaHandle: @unchecked Sendable {
    package enum Kind {
        case producer
        /// Follows partitions.
        case tail
        /// Reads ranges and queries ends.
        case reading
        /// Appends single records: control records and announcements.
        case telling

        var isProducer: Bool { self == .producer || self == .telling }
    }

    let pointer: OpaquePointer
    private let context: Unmanaged<CallbackContext>

    init(_ kind: KafkaHandle.Kind, _ configuration: KafkaConfiguration, log: @escaping KafkaLogLine) throws(LogError) {
        guard let properties = rd_kafka_conf_new() else { throw LogError(.internal, "librdkafka gives no settings") }
        let reason = UnsafeMutablePointer<CChar>.allocate(capacity: 512)
        reason.initialize(repeating: 0, count: 512)
        defer { reason.deallocate() }
        for (name, value) in configuration.settings(of: kind)
        where rd_kafka_conf_set(properties, name, value, reason, 512) != RD_KAFKA_CONF_OK {
            rd_kafka_conf_destroy(properties)
            throw LogError(.badRequest, "librdkafka refuses \(name): \(String(cString: reason))")
        }
        context = Unmanaged.passRetained(CallbackContext(log))
        rd_kafka_conf_set_opaque(properties, context.toOpaque())
        rd_kafka_conf_set_log_cb(properties, CallbackContext.log)
        if kind.isProducer {
            rd_kafka_conf_set_events(properties, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR)
        } else {
            rd_kafka_conf_set_error_cb(properties, CallbackContext.error)
        }
        let type = kind.isProducer ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER
        guard let pointer = rd_kafka_new(type, properties, reason, 512) else {
            rd_kafka_conf_destroy(properties)
            context.release()
            throw .refused(String(cString: reason), configuration)
        }
        self.pointer = pointer
    }

    deinit {
        let (pointer, context) = (UInt(bitPattern: pointer), context)
        // Without a thread the handle is leaked. That is better than blocking an event loop.
        try? LogThread.detach("kafka-end") {
            rd_kafka_destroy(OpaquePointer(bitPattern: pointer))
            context.release()
        }
    }

    /// The last error of the brokers, in librdkafka's words.
    var trouble: String? { context.takeUnretainedValue().trouble.withLock { $0 } }

    /// The number of connection errors since the handle was created.
    var troubles: Int { context.takeUnretainedValue().troubles.load(ordering: .relaxed) }

    /// How many times a topic in use was found with another number of partitions; a deleted topic has 0.
    var topicChanges: Int { context.takeUnretainedValue().topicChanges.load(ordering: .relaxed) }

    /// Returns the value of a numeric setting.
    func number(_ name: String) -> Int? {
        var size = 64
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: size) { text in
            guard rd_kafka_conf_get(rd_kafka_conf(pointer), name, text.baseAddress, &size) == RD_KAFKA_CONF_OK,
                let start = text.baseAddress
            else { return nil }
            return Int(String(cString: start))
        }
    }

    func heard(_ code: rd_kafka_resp_err_t, _ reason: String) {
        context.takeUnretainedValue().note(code, reason)
    }

    /// The context of librdkafka's callbacks.
    private final class CallbackContext: Sendable {
        let line: KafkaLogLine
        let trouble = Mutex<String?>(nil)
        let troubles = Atomic(0)
        let topicChanges = Atomic(0)

        init(_ line: @escaping KafkaLogLine) {
            self.line = line
        }

        func note(_ code: rd_kafka_resp_err_t, _ reason: String) {
            // That all brokers are down does not say why they are.
            if code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN { trouble.withLock { $0 = reason } }
            troubles.add(1, ordering: .relaxed)
        }

        static let log: @convention(c) (OpaquePointer?, Int32, UnsafePointer<CChar>?, UnsafePointer<CChar>?) -> Void = {
            handle,
            level,
            facility,
            text in
            guard let handle, let text, let opaque = rd_kafka_opaque(handle) else { return }
            let kind = facility.map { String(cString: $0) } ?? ""
            let context = Unmanaged<CallbackContext>.fromOpaque(opaque).takeUnretainedValue()
            // No other callback tells a consumer that its topic is gone.
            if kind == "PARTCNT" { context.topicChanges.add(1, ordering: .relaxed) }
            context.line(level, kind, String(cString: text))
        }

        static let error:
            @convention(c) (OpaquePointer?, Int32, UnsafePointer<CChar>?, UnsafeMutableRawPointer?) -> Void = {
                _,
                code,
                reason,
                opaque in
                guard let opaque else { return }
                let text = reason.map { String(cString: $0) } ?? ""
                Unmanaged<CallbackContext>.fromOpaque(opaque).takeUnretainedValue().note(
                    rd_kafka_resp_err_t(code),
                    text
                )
            }
    }
}

extension LogError {
    /// Returns the error for settings that librdkafka refuses. OpenSSL's text about an unusable file is replaced by a
    /// clear one.
    fileprivate static func refused(_ reason: String, _ configuration: KafkaConfiguration) -> LogError {
        var text = reason
        if let end = reason.firstRange(of: ".location failed:")?.lowerBound {
            let name = reason[..<end] + ".location"
            let file = configuration.properties[String(name)].map { " in `\($0)`" } ?? ""
            text = "\(name) finds nothing\(file) that it can use"
        }
        return LogError(.badRequest, "the Kafka client does not take its settings: \(text)")
    }

    /// Creates the error for an error code of librdkafka or a broker.
    init(kafka code: rd_kafka_resp_err_t, _ doing: String, trouble: String? = nil) {
        let kind: ErrorCode =
            switch code {
            case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE: .tooLarge
            case RD_KAFKA_RESP_ERR__QUEUE_FULL: .overloaded
            case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
                .forbidden
            default: .logUnavailable
            }
        let text = String(cString: rd_kafka_err2str(code))
        self.init(kind, "cannot \(doing): \(text)\(trouble.map { " (\($0))" } ?? "")")
    }
}
