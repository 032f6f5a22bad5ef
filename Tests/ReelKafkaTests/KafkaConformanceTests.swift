import EventLogConformance
import ReelKafka
import ReelLog
import Testing

@Suite(.timeLimit(.minutes(15)))
struct KafkaConformanceTests {
    @Test("every log does, on librdkafka's mock cluster", arguments: LogRequirement.appending + LogRequirement.reading)
    func mock(_ requirement: LogRequirement) async throws {
        try await requirement.hold(for: MockKafka())
    }

    @Test(
        "every log does, on a real Kafka",
        .onARealKafka,
        arguments: LogRequirement.appending + LogRequirement.reading
    )
    func real(_ requirement: LogRequirement) async throws {
        try await requirement.hold(for: #require(RealKafka.fromEnvironment))
    }
}

/// A log on brokers that live in this process; announcements need a topic that their cluster cannot make.
struct MockKafka: LogKind {
    var testDescription: String { "mock cluster" }

    func withLog(partitions: Int, _ body: (any EventLog) async throws -> Void) async throws {
        let brokers = try MockBrokers(3)
        let log = try brokers.log(partitions: partitions)
        defer { log.close() }
        try await body(log)
    }
}
