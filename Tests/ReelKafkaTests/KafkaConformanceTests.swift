import EventLogConformance
import Foundation
import ReelCore
import ReelKafka
import ReelLog
import Testing

@Suite(.timeLimit(.minutes(5)))
struct KafkaConformanceTests {
    @Test("every log does, on librdkafka's mock cluster", arguments: LogRequirement.appending + LogRequirement.reading)
    func mock(_ requirement: LogRequirement) async throws {
        try await requirement.hold(for: MockKafka())
    }

    @Test(
        "every log does, on a real Kafka",
        .enabled(if: RealKafka.fromEnvironment != nil, "REEL_KAFKA names no broker: nothing was tested on a real one"),
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

/// A log in a fresh topic of the brokers that `REEL_KAFKA` names, `HOST:PORT,HOST:PORT`.
struct RealKafka: LogKind {
    let brokers: [String]

    static let fromEnvironment: RealKafka? = {
        let list = ProcessInfo.processInfo.environment["REEL_KAFKA"] ?? ""
        return list.isEmpty ? nil : RealKafka(brokers: list.split(separator: ",").map(String.init))
    }()

    var testDescription: String { brokers.joined(separator: ",") }

    func withLog(partitions: Int, _ body: (any EventLog) async throws -> Void) async throws {
        let epoch = Epoch.random()
        let topic = "reel.\(epoch)"
        try createTopic(topic, partitions: partitions, brokers: brokers)
        let log = try KafkaLog(
            epoch: epoch,
            partitions: partitions,
            topic: topic,
            configuration: KafkaConfiguration(brokers: brokers),
            directory: NoDirectory(),
            log: { _, _ in }
        )
        defer { log.close() }
        try await body(log)
    }
}
