internal import CRdkafka

/// The C library that speaks to the brokers.
public enum KafkaLibrary {
    /// Its version as it says it, such as `2.0.2`. It is the one loaded, not the one built against.
    public static var version: String { String(cString: rd_kafka_version_str()) }

    /// Whether brokers of Kafka 4 take its SCRAM logins: before 2.6.1 it says the nonce wrongly, and they are strict.
    public static var hasStrictSCRAM: Bool { rd_kafka_version() >= 0x0206_0100 }
}
