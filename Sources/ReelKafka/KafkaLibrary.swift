internal import CRdkafka

/// The C library that connects to the brokers: librdkafka.
public enum KafkaLibrary {
    /// The version of the loaded library, such as `2.0.2`. It may differ from the one that was built against.
    public static var version: String { String(cString: rd_kafka_version_str()) }

    /// True if brokers of Kafka 4 accept its SCRAM logins. Before 2.6.1 it sends a wrong nonce, which Kafka 4 refuses.
    public static var hasStrictSCRAM: Bool { rd_kafka_version() >= 0x0206_0100 }
}
