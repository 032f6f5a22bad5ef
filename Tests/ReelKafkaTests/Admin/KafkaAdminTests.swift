import CRdkafka
import Foundation
import NodeTestSupport
import Testing

@testable import ReelKafka

/// Tests queries to brokers about topics.
@Suite(.timeLimit(.minutes(5))) struct KafkaAdminTests {
    @Test("a topic that the broker does not know yet is asked for again") func late() throws {
        let brokers = try MockBrokers()
        brokers.topic("late")
        // The broker gets the topic directly after its first answer that it does not know the topic.
        let door = try BrokerDoor(before: brokers.brokers[0]) { answer in
            guard answer.firstRange(of: "late".utf8) != nil else { return }
            brokers.say(RD_KAFKA_RESP_ERR_NO_ERROR, ofTopic: "late")
        }
        var configuration = brokers.configuration
        configuration.brokers = [door.address]
        // A thread that is delayed may miss the time for the second query, so there are 20 attempts.
        var isFound = false
        for _ in 0..<20 where !isFound {
            brokers.say(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, ofTopic: "late")
            isFound = try KafkaAdmin(configuration).topic("late") != nil
        }
        #expect(isFound)
    }
}
