import Foundation
import Testing

@testable import ReelKafka

/// Questions to brokers about their topics.
@Suite(.timeLimit(.minutes(5))) struct KafkaAdminTests {
    @Test("a topic that the broker does not know yet is asked for again") func late() throws {
        let brokers = try MockBrokers()
        let admin = try KafkaAdmin(brokers.configuration)
        try admin.reach()
        #expect(try admin.hearsay(of: "none").facts == nil)
        // Who stands still for a moment may miss the time in which it asks again: then there is another try.
        var isFound = false
        for attempt in 0..<20 where !isFound {
            Thread.detachNewThread {
                usleep(300_000)
                brokers.topic("late-\(attempt)")
            }
            isFound = try admin.topic("late-\(attempt)") != nil
        }
        #expect(isFound)
    }
}
