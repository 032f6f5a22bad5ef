import Foundation
import ReelLab
import Testing

/// The real Kafka that `KAFKA_HOME` names, for suites that are skipped where it names none.
enum RealKafka {
    static let isNamed = !(ProcessInfo.processInfo.environment["KAFKA_HOME"] ?? "").isEmpty

    static func home() throws -> KafkaHome { try #require(try KafkaHome.named()) }
}

extension Trait where Self == ConditionTrait {
    /// Only where there is a real Kafka.
    static var realKafka: Self {
        .enabled(if: RealKafka.isNamed, "KAFKA_HOME names no Kafka: nothing was tested on a real one")
    }
}

extension LocalKafka {
    /// Kafka's own `kafka-topics`.
    @discardableResult
    func topics(_ arguments: String...) throws -> String {
        try tool("org.apache.kafka.tools.TopicCommand", arguments)
    }
}
