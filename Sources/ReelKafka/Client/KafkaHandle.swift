internal import CRdkafka
internal import Glibc
internal import ReelCore
internal import ReelLog
internal import Synchronization

/// Takes the lines of librdkafka: a syslog level (3: error … 7: debug), the facility, such as `FAIL`, and a text, which
/// may hold what a broker has sent. Called on any thread.
public typealias KafkaLogLine = @Sendable (_ level: Int32, _ facility: String, _ text: String) -> Void

/// A handle of librdkafka: its threads and its connections to the brokers. It is destroyed, on a thread of its own,
/// when nobody holds it any more; so batches of its memory may be dropped on any thread.
package final class KafkaHandle: @unchecked Sendable {
    package enum Kind {
        case producer
        /// Follows partitions.
        case tail
        /// Reads ranges, asks for ends.
        case reading
        /// Appends a word now and then: control records, announcements.
        case telling

        var isProducer: Bool { self == .producer || self == .telling }
    }

    let pointer: OpaquePointer
    private let ear: Unmanaged<CallbackContext>

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
        ear = Unmanaged.passRetained(CallbackContext(log))
        rd_kafka_conf_set_opaque(properties, ear.toOpaque())
        rd_kafka_conf_set_log_cb(properties, CallbackContext.log)
        if kind.isProducer {
            rd_kafka_conf_set_events(properties, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR)
        } else {
            rd_kafka_conf_set_error_cb(properties, CallbackContext.error)
        }
        let type = kind.isProducer ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER
        guard let pointer = rd_kafka_new(type, properties, reason, 512) else {
            rd_kafka_conf_destroy(properties)
            ear.release()
            throw .refused(String(cString: reason), configuration)
        }
        self.pointer = pointer
    }

    deinit {
        let (pointer, ear) = (UInt(bitPattern: pointer), ear)
        // Without a thread it is kept: better than to block an event loop.
        try? LogThread.detach("kafka-end") {
            rd_kafka_destroy(OpaquePointer(bitPattern: pointer))
            ear.release()
        }
    }

    /// What went wrong last with the brokers, in librdkafka's words.
    var trouble: String? { ear.takeUnretainedValue().trouble.withLock { $0 } }

    /// Errors of the connections since the handle was made.
    var troubles: Int { ear.takeUnretainedValue().troubles.load(ordering: .relaxed) }

    /// How often a topic in use was found to have another number of partitions, 0 if it was deleted.
    var topicChanges: Int { ear.takeUnretainedValue().topicChanges.load(ordering: .relaxed) }

    /// A number among its settings.
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
        ear.takeUnretainedValue().hear(code, reason)
    }

    /// What librdkafka calls.
    private final class CallbackContext: Sendable {
        let line: KafkaLogLine
        let trouble = Mutex<String?>(nil)
        let troubles = Atomic(0)
        let topicChanges = Atomic(0)

        init(_ line: @escaping KafkaLogLine) {
            self.line = line
        }

        func hear(_ code: rd_kafka_resp_err_t, _ reason: String) {
            // That all are down says nothing of why they are.
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
            let ear = Unmanaged<CallbackContext>.fromOpaque(opaque).takeUnretainedValue()
            // A consumer is told in no other way that its topic is gone.
            if kind == "PARTCNT" { ear.topicChanges.add(1, ordering: .relaxed) }
            ear.line(level, kind, String(cString: text))
        }

        static let error:
            @convention(c) (OpaquePointer?, Int32, UnsafePointer<CChar>?, UnsafeMutableRawPointer?) -> Void = {
                _,
                code,
                reason,
                opaque in
                guard let opaque else { return }
                let text = reason.map { String(cString: $0) } ?? ""
                Unmanaged<CallbackContext>.fromOpaque(opaque).takeUnretainedValue().hear(
                    rd_kafka_resp_err_t(code),
                    text
                )
            }
    }
}

extension LogError {
    /// librdkafka makes no handle of these settings. What OpenSSL says of a file that it cannot use helps nobody.
    fileprivate static func refused(_ reason: String, _ configuration: KafkaConfiguration) -> LogError {
        var text = reason
        if let end = reason.firstRange(of: ".location failed:")?.lowerBound {
            let name = reason[..<end] + ".location"
            let file = configuration.properties[String(name)].map { " in `\($0)`" } ?? ""
            text = "\(name) finds nothing\(file) that it can use"
        }
        return LogError(.badRequest, "the Kafka client does not take its settings: \(text)")
    }

    /// What librdkafka or a broker answered.
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
