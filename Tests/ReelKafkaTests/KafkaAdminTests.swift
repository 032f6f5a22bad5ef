import CRdkafka
import Foundation
import Testing

@testable import ReelKafka

/// Questions to brokers about their topics.
@Suite(.timeLimit(.minutes(5))) struct KafkaAdminTests {
    @Test("a topic that the broker does not know yet is asked for again") func late() throws {
        let brokers = try MockBrokers()
        let admin = try KafkaAdmin(brokers.configuration)
        brokers.topic("late")
        // Who stands still for a moment may miss the time in which it asks again: then there is another try.
        var isFound = false
        for _ in 0..<20 where !isFound {
            brokers.say(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, ofTopic: "late")
            Thread.detachNewThread {
                usleep(300_000)
                brokers.say(RD_KAFKA_RESP_ERR_NO_ERROR, ofTopic: "late")
            }
            isFound = try admin.topic("late") != nil
        }
        #expect(isFound)
    }
}
