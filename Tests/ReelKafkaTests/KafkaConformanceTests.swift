import EventLogConformance
import NodeTestSupport
import ReelCore
import ReelKafka
import ReelLog
import Testing

@Suite(.timeLimit(.minutes(15)))
struct KafkaConformanceTests {
    @Test("every log does, on librdkafka's mock cluster", arguments: LogRequirement.all)
    func mock(_ requirement: LogRequirement) async throws {
        try await requirement.hold(for: MockKafka())
    }

    @Test("every log does, on a real Kafka", .onARealKafka, arguments: LogRequirement.all)
    func real(_ requirement: LogRequirement) async throws {
        try await requirement.hold(for: #require(RealKafka.fromEnvironment))
    }

    @Test("every log that can be trimmed does, on a real Kafka", .onARealKafka, arguments: TrimRequirement.all)
    func realTrimmed(_ requirement: TrimRequirement) async throws {
        try await requirement.hold(for: #require(RealKafka.fromEnvironment))
    }
}

/// A log on a mock cluster in this process, opened in the same way as a node opens it.
struct MockKafka: LogKind {
    var testDescription: String { "mock cluster" }

    func withLog(partitions: Int, _ body: (any EventLog) async throws -> Void) async throws {
        let (brokers, epoch) = (try MockBrokers(3), Epoch.random())
        brokers.topic("reel.nodes")
        brokers.topic("reel.\(epoch)", partitions: partitions)
        let store = try KafkaLogStore(brokers.configuration) { _, _, _ in }
        defer { store.close() }
        let log = try store.open(epoch)
        defer { log.close() }
        try await body(log)
    }
}
