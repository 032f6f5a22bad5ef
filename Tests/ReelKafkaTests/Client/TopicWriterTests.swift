import CRdkafka
import EventLogConformance
import NodeTestSupport
import ReelCore
import ReelLog
import TestSupport
import Testing

@testable import ReelKafka

/// Tests a writer of single records, each of which has its own outcome.
@Suite(.timeLimit(.minutes(5))) struct TopicWriterTests {
    @Test("a topic writer does not take a late report for the report of the next record")
    func ignoresLateReport() async throws {
        let brokers = try MockBrokers()
        brokers.topic("words")
        let writer = TopicWriter(topic: "words", configuration: brokers.configuration) { _, _, _ in }
        let admin = try KafkaAdmin(brokers.configuration)
        #expect(throws: LogError.self) { try writer.append(key: [1], value: [1], waitMs: 0) }
        try await eventually("it is in the topic, and reported") { try admin.wasWritten("words") }
        brokers.fail(.produce, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
        let error = #expect(throws: LogError.self) { try writer.append(key: [2], value: [2]) }
        #expect(error?.code == .tooLarge)
        try writer.append(key: [3], value: [3])
    }
}
