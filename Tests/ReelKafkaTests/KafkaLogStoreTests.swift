import EventLogConformance
import Foundation
import NodeTestSupport
import ReelCore
import ReelKafka
import ReelLog
import Testing

/// Tests the records of the brokers about the current log and the nodes. They use the mock cluster, which cannot create
/// or describe topics.
@Suite(.timeLimit(.minutes(5))) struct KafkaLogStoreTests {
    private func store(_ brokers: MockBrokers) throws -> KafkaLogStore {
        try KafkaLogStore(brokers.configuration) { _, _, _ in }
    }

    private func withControl(_ body: (MockBrokers, KafkaLogStore) throws -> Void) throws {
        let brokers = try MockBrokers()
        brokers.topic("reel.control")
        let store = try store(brokers)
        defer { store.close() }
        try body(brokers, store)
    }

    @Test("a new deployment has no current log") func aNewDeploymentHas() throws {
        try withControl { _, store in
            let current = try store.current()
            #expect(current == nil)
        }
    }

    @Test("the next number becomes current for everybody") func theNextNumberBecomes() throws {
        try withControl { brokers, store in
            var log = CurrentLog(epoch: .random(), partitions: 4, number: 0)
            try store.advance(to: log)
            #expect(try store.current() == log)
            // The same record again changes nothing.
            try store.advance(to: log)
            log = CurrentLog(epoch: .random(), partitions: 8, number: 1, deployment: log.deployment)
            try store.advance(to: log)
            let other = try self.store(brokers)
            defer { other.close() }
            #expect(try other.current() == log)
        }
    }

    @Test("a control record counts when its acknowledgement is lost") func lostAcknowledgement() throws {
        let brokers = try MockBrokers()
        brokers.topic("reel.control")
        var configuration = brokers.configuration
        configuration.patience = 2
        let store = try KafkaLogStore(configuration) { _, _, _ in }
        defer { store.close() }
        brokers.answerLate(.produce, ms: 600_000)
        let log = CurrentLog(epoch: .random(), partitions: 4, number: 0)
        try store.advance(to: log)
        #expect(try store.current() == log)
    }

    @Test("another number is a conflict", arguments: [0, 1, 3]) func anotherNumberIsA(number: Int) throws {
        try withControl { _, store in
            try store.advance(to: CurrentLog(epoch: .random(), partitions: 4, number: 0))
            let second = CurrentLog(epoch: .random(), partitions: 4, number: 1)
            try store.advance(to: second)
            let error = #expect(throws: LogError.self) {
                try store.advance(to: CurrentLog(epoch: .random(), partitions: 4, number: number))
            }
            #expect(error?.code == .conflict)
            #expect(try store.current() == second)
        }
    }

    @Test("brokers without a log go on with the number of one that was lost") func brokersWithoutALog() throws {
        try withControl { _, store in
            let next = CurrentLog(epoch: .random(), partitions: 4, number: 3)
            try store.advance(to: next)
            #expect(try store.current() == next)
        }
    }

    @Test("of several at once one wins and the others know") func ofSeveralAtOnce() async throws {
        let brokers = try MockBrokers()
        brokers.topic("reel.control")
        let configuration = brokers.configuration
        let winners = try await withThrowingTaskGroup(of: CurrentLog?.self) { group -> [CurrentLog] in
            for _ in 0..<4 {
                group.addTask {
                    let store = try KafkaLogStore(configuration) { _, _, _ in }
                    defer { store.close() }
                    let log = CurrentLog(epoch: .random(), partitions: 4, number: 0)
                    do {
                        try store.advance(to: log)
                        return log
                    } catch let error as LogError where error.code == .conflict {
                        return nil
                    }
                }
            }
            return try await group.compactMap(\.self).reduce(into: []) { $0.append($1) }
        }
        let store = try store(brokers)
        defer { store.close() }
        #expect(winners.count == 1)
        #expect(try store.current() == winners.first)
    }

    @Test("nodes hear each other, and a node with a fast clock counts as heard now") func nodesHearEachOther()
        throws
    {
        let (brokers, epoch) = (try MockBrokers(), Epoch.random())
        brokers.topic("reel.nodes")
        brokers.topic("reel.\(epoch)", partitions: 2)
        let store = try store(brokers)
        let (one, other) = (try store.open(epoch), try self.store(brokers).open(epoch))
        store.close()
        defer {
            one.close()
            other.close()
        }
        func nowMs() -> Int64 { Int64(Date.now.timeIntervalSince1970 * 1000) }
        let said = nowMs()
        var node = NodeAnnouncement(
            id: "a",
            role: "gateway",
            url: "http://127.0.0.1:1",
            advertised: nil,
            build: "1",
            epoch: epoch,
            positions: [],
            atMs: said + 3_600_000
        )
        node.isReady = true
        try one.announce(node)
        let heard = try #require(try other.nodes().first)
        #expect((said...nowMs()).contains(heard.heardMs))
        #expect(heard == node)
    }

    @Test("the current log has as many partitions as it was made with") func theCurrentLogHas() throws {
        try withControl { brokers, store in
            let epoch = Epoch.random()
            brokers.topic("reel.\(epoch)", partitions: 3)
            try store.advance(to: CurrentLog(epoch: epoch, partitions: 2, number: 0))
            let log = try store.open(epoch)
            defer { log.close() }
            #expect(log.partitions == 2, "somebody has added one")
            let other = Epoch.random()
            brokers.topic("reel.\(other)", partitions: 3)
            try store.advance(to: CurrentLog(epoch: other, partitions: 4, number: 1))
            let error = #expect(throws: LogError.self) { _ = try store.open(other) }
            #expect(error?.code == .damaged)
        }
    }

    @Test("every log of the brokers is known by its topic") func everyLogOfThe() throws {
        try withControl { brokers, store in
            let none = try store.epochs()
            #expect(none.isEmpty)
            brokers.topic("reel.nodes")
            for name in ["reel.00000000000000b2", "other.00000000000000c3", "reel.00000000000000a1", "reel.b2"] {
                brokers.topic(name, partitions: 2)
            }
            let epochs = try store.epochs()
            #expect(epochs == [Epoch(0xa1), Epoch(0xb2)])
        }
    }

    @Test("brokers that hold a log without a name are not given another one") func brokersThatHoldA() async throws {
        let brokers = try MockBrokers()
        brokers.topic("reel.control")
        brokers.topic("reel.nodes")
        let log = try brokers.log(partitions: 2)
        defer { log.close() }
        let store = try store(brokers)
        defer { store.close() }
        #expect(try store.absence().text.hasPrefix("there is no log"), "a topic that is empty is none yet")
        try await log.append([LogAppend("s", "a")], to: 1)
        let absence = try store.absence()
        #expect(absence.text.contains("reel.\(log.epoch)") && absence.repair?.contains("--from-snapshot") == true)
        let error = #expect(throws: LogError.self) { _ = try store.begin(partitions: 2) }
        #expect(error?.code == .damaged)
        #expect(try store.current() == nil)
    }

    @Test("no topic is made to which too few brokers could write") func noTopicIsMade() throws {
        let brokers = try MockBrokers()
        let epoch = Epoch.random()
        for name in ["reel.control", "reel.nodes", TopicRole.name(of: epoch)] { brokers.hide(name) }
        let store = try KafkaLogStore(brokers.configuration, replicas: 3) { _, _, _ in }
        defer { store.close() }
        let error = #expect(throws: LogError.self) { try store.create(epoch, partitions: 1) }
        let message = error?.message ?? ""
        #expect(message.contains("found 1 of the brokers, expected are 2 or more"), "\(message)")
        #expect(message.contains("--replication"), "\(message)")
    }

    @Test("a broker that has not heard of a log yet is not believed") func aBrokerThatHas() throws {
        let (brokers, epoch) = (try MockBrokers(2), Epoch.random())
        let topic = TopicRole.name(of: epoch)
        brokers.topic("reel.control")
        brokers.topic(topic, partitions: 2)
        let door = try BrokerDoor(before: brokers.brokers[0], hidden: topic)
        brokers.hide(BrokerDoor.alias(of: topic))
        var configuration = brokers.configuration
        configuration.brokers = [door.address]
        let store = try KafkaLogStore(configuration) { _, _, _ in }
        defer { store.close() }
        let log = try store.open(epoch)
        defer { log.close() }
        #expect(log.partitions == 2)
        let other = Epoch.random()
        brokers.hide(TopicRole.name(of: other))
        let error = #expect(throws: LogError.self) { _ = try store.open(other) }
        #expect(error?.code == .damaged, "nobody has heard of this one")
    }

    @Test("each broker that is too old is named with its release") func eachBrokerThatIs() throws {
        let brokers = try MockBrokers(3)
        brokers.claim(fetch: 11)
        var configuration = brokers.configuration
        // The client learns of the other two brokers from this one.
        configuration.brokers = [brokers.brokers[0]]
        let store = try KafkaLogStore(configuration) { _, _, _ in }
        defer { store.close() }
        let findings = try store.check()
        #expect(findings.allSatisfy { $0.weight == .error })
        let told = "it is of Kafka 2.3 to 2.6 (it takes Fetch up to version 11), wanted is 3.7 or newer"
        #expect(findings.map(\.description) == brokers.brokers.sorted().map { "broker \($0): \(told)" })
    }

    @Test("one dead broker of the list does no harm") func oneDeadBrokerOf() throws {
        let brokers = try MockBrokers()
        brokers.topic("reel.control")
        var configuration = brokers.configuration
        configuration.brokers.insert("127.0.0.1:1", at: 0)
        let store = try KafkaLogStore(configuration) { _, _, _ in }
        defer { store.close() }
        #expect(try store.current() == nil)
    }
}
