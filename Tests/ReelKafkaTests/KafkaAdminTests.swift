import CRdkafka
import Foundation
import Testing

@testable import ReelKafka

/// Questions to brokers about their topics.
@Suite(.timeLimit(.minutes(5))) struct KafkaAdminTests {
    @Test("a topic that the broker does not know yet is asked for again") func late() throws {
        let brokers = try MockBrokers()
        brokers.topic("late")
        // The broker hears of it as soon as it has said that it does not know it.
        let door = try BrokerDoor(before: brokers.brokers[0]) { answer in
            guard answer.firstRange(of: "late".utf8) != nil else { return }
            brokers.say(RD_KAFKA_RESP_ERR_NO_ERROR, ofTopic: "late")
        }
        var configuration = brokers.configuration
        configuration.brokers = [door.address]
        // Who stands still for a moment may miss the time in which it asks again: then there is another try.
        var isFound = false
        for _ in 0..<20 where !isFound {
            brokers.say(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, ofTopic: "late")
            isFound = try KafkaAdmin(configuration).topic("late") != nil
        }
        #expect(isFound)
    }
}
