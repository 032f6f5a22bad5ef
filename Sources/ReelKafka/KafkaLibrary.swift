internal import CRdkafka

/// The C library that speaks to the brokers.
public enum KafkaLibrary {
    /// Its version as it says it, such as `2.0.2`. It is the one loaded, not the one built against.
    public static var version: String { String(cString: rd_kafka_version_str()) }
}
