internal import CRdkafka
internal import ReelLog

/// Why librdkafka gave no answer, as far as it makes a difference.
struct KafkaFailure: Error {
    enum Kind {
        /// The log has no such offset.
        case outOfRange
        /// Asking again does not help: no such topic or partition, no right to read, data that cannot be read.
        case lasting
        /// The brokers do not answer.
        case away
        /// The log has been closed.
        case closed
    }
    var kind: Kind
    var error: LogError

    init(_ kind: Kind, _ error: LogError) {
        self.kind = kind
        self.error = error
    }

    init(_ code: rd_kafka_resp_err_t, _ doing: String, _ handle: KafkaHandle) {
        switch code {
        case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET, RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE: kind = .outOfRange
        case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION,
            RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
            kind = .lasting
        default: kind = .away
        }
        error = LogError(kafka: code, doing, trouble: handle.trouble)
    }
}
