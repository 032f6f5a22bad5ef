import Foundation
import ReelLab
import TestSupport
import Testing

/// Tests the local cluster on which the other suites here run.
@Suite(.realKafka, .serialized, .timeLimit(.minutes(15))) struct LocalKafkaTests {
    @Test("a broker that is killed comes back with its data") func aBrokerThatIs() throws {
        let kafka = try LocalKafka(try RealKafka.home(), brokers: 1)
        #expect(kafka.controller() == 1)
        try kafka.topics("--create", "--topic", "kept", "--partitions", "3")
        kafka.kill(1)
        #expect(!kafka.isRunning(1))
        try kafka.start([1])
        #expect(try kafka.topics("--list").split(separator: "\n").contains("kept"))
    }

    @Test("three brokers elect another controller when theirs is gone") func threeBrokersElectAnother() async throws {
        let kafka = try LocalKafka(try RealKafka.home(), brokers: 3)
        let first = try #require(kafka.controller())
        kafka.kill(first)
        try await eventually("another controller") { kafka.controller().map { $0 != first } ?? false }
        try kafka.start([first])
        try kafka.topics("--create", "--topic", "threefold", "--partitions", "3", "--replication-factor", "3")
        #expect(!(try kafka.topics("--describe", "--under-replicated-partitions")).contains("threefold"))
    }

    @Test("a folder without Kafka is named") func aFolderWithoutKafka() throws {
        let folder = try TemporaryFolder(prefix: "reel-nothing-")
        let failure = #expect(throws: ChildProcess.Failure.self) { try KafkaHome(folder.path) }
        #expect(failure?.description.contains("no Kafka in `\(folder.path)`") == true)
    }
}
