internal import CRdkafka
internal import ReelCore
internal import ReelLog

/// A failed question to the brokers, with the kind of failure that the caller distinguishes.
struct KafkaFailure: Error {
    enum Kind {
        /// The log does not have this offset.
        case outOfRange
        /// A retry does not help: there is no such topic or partition, the right to read is missing, or a record is
        /// damaged.
        case lasting
        /// The brokers do not answer, or not with the requested data.
        case away
        /// The failure is itself an answer: the log was trimmed, or closed.
        case told
    }
    var kind: Kind
    var error: LogError

    init(_ kind: Kind, _ error: LogError) {
        self.kind = kind
        self.error = error
    }

    init(_ code: rd_kafka_resp_err_t, _ doing: String, _ handle: KafkaHandle, topic: String) {
        let text = String(cString: rd_kafka_err2str(code))
        switch code {
        case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET, RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
            self.init(.outOfRange, LogError(kafka: code, doing))
        case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
            RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
            let message = "cannot \(doing): the brokers know no such partition of the topic \(topic) (\(text))"
            self.init(.lasting, LogError(.logUnavailable, message))
        case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
            let message = "cannot \(doing): the user needs the rights to read and describe the topic \(topic) (\(text))"
            self.init(.lasting, LogError(.logUnavailable, message))
        case RD_KAFKA_RESP_ERR__BAD_MSG, RD_KAFKA_RESP_ERR__BAD_COMPRESSION, RD_KAFKA_RESP_ERR_INVALID_MSG,
            RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED:
            let message =
                "cannot \(doing): what the brokers keep of the topic \(topic) there is damaged, or nothing that"
                + " librdkafka knows (\(text))"
            self.init(.lasting, LogError(.logUnavailable, message))
        default:
            self.init(.away, LogError(kafka: code, doing, trouble: handle.trouble))
        }
    }
}
