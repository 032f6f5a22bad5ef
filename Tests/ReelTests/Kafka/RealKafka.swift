import Foundation
import ReelLab
import Testing

/// The real Kafka that `KAFKA_HOME` names. Suites that need it are skipped if the variable is unset.
enum RealKafka {
    static let isNamed = !(ProcessInfo.processInfo.environment["KAFKA_HOME"] ?? "").isEmpty

    static func home() throws -> KafkaHome { try #require(try KafkaHome.named()) }
}

extension Trait where Self == ConditionTrait {
    /// Enables a suite only if there is a real Kafka.
    static var realKafka: Self {
        .enabled(if: RealKafka.isNamed, "KAFKA_HOME names no Kafka: nothing was tested on a real one")
    }
}

extension LocalKafka {
    /// Runs Kafka's own `kafka-topics`.
    @discardableResult
    func topics(_ arguments: String...) throws -> String {
        try tool("org.apache.kafka.tools.TopicCommand", arguments)
    }
}
