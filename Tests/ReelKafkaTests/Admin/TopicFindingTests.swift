import ReelCore
import Testing

@testable import ReelKafka

/// Tests the findings about a topic: each contains the actual value, the wanted value, and the command that corrects
/// it.
@Suite struct TopicFindingTests {
    private static let data = TopicRole.data(partitions: 4)

    private func topic(_ role: TopicRole, replicas: Int = 3, _ changed: [String: String] = [:]) -> TopicFacts {
        let partition = TopicFacts.Partition(leader: 1, replicas: replicas, inSync: replicas)
        return TopicFacts(
            name: "reel.x",
            partitions: Array(repeating: partition, count: role.partitions),
            settings: role.settings(TopicCopies(replicas: replicas)).merging(changed) { $1 }
        )
    }

    private func findings(_ facts: TopicFacts, _ role: TopicRole) -> [KafkaFinding] {
        facts.findings(as: role, bootstrap: "a:1,b:2")
    }

    @Test("a topic that reel made is as it must be", arguments: [data, .control, .nodes]) func aTopicThatReel(
        role: TopicRole
    ) {
        #expect(findings(topic(role), role).isEmpty)
        let alone = findings(topic(role, replicas: 1), role)
        #expect(alone.allSatisfy { $0.weight == .warning && $0.text.contains("one broker each") })
        #expect(alone.count == (role == .nodes ? 0 : 1))
    }

    @Test(
        "a wrong setting is an error with its repair",
        arguments: [
            ("cleanup.policy", "compact", "delete"),
            ("cleanup.policy", "compact,delete", "delete"),
            ("retention.ms", "604800000", "-1"),
            ("retention.bytes", "1073741824", "-1"),
            ("unclean.leader.election.enable", "true", "false"),
            ("max.message.bytes", "1048588", "at least 1114112"),
            ("segment.bytes", "1048588", "at least 1114112"),
            ("min.insync.replicas", "4", "1 to 3"),
        ]
    ) func aWrongSettingIs(name: String, found: String, wanted: String) throws {
        let finding = try #require(findings(topic(Self.data, [name: found]), Self.data).first)
        #expect(finding.weight == .error)
        #expect(finding.description.hasPrefix("reel.x: \(name) is \(found), wanted is \(wanted): "))
        let value = try #require(Self.data.settings(TopicCopies(replicas: 3))[name])
        let repair = "kafka-configs.sh --bootstrap-server a:1,b:2 --alter --entity-type topics --entity-name reel.x"
        #expect(finding.repair == "\(repair) --add-config \(name)=\(value)")
    }

    @Test("a control topic that could be compacted is an error") func aControlTopicThat() throws {
        let finding = try #require(findings(topic(.control, ["min.compaction.lag.ms": "0"]), .control).first)
        #expect(finding.weight == .error)
        #expect(finding.text.hasPrefix("min.compaction.lag.ms is 0, wanted is 9223372036854775807"))
    }

    @Test("the topic check warns about record timestamps that nodes set") func warnsAboutTimestamps() {
        let found = findings(topic(Self.data, ["message.timestamp.type": "CreateTime"]), Self.data)
        #expect(found.map(\.weight) == [.warning])
    }

    @Test("of several mistakes each is named") func ofSeveralMistakesEach() {
        let facts = topic(Self.data, ["retention.ms": "1", "retention.bytes": "1"])
        #expect(findings(facts, Self.data).count == 2)
    }

    @Test("one replica in sync is enough for an ack and so a warning") func oneReplicaInSync() throws {
        let found = findings(topic(Self.data, ["min.insync.replicas": "1"]), Self.data)
        #expect(found.map(\.weight) == [.warning])
        #expect(found.first?.text.contains("wanted is at least 2") == true)
    }

    @Test("another number of partitions is an error") func anotherNumberOfPartitions() throws {
        var facts = topic(Self.data)
        facts.partitions.removeLast()
        let finding = try #require(findings(facts, Self.data).first)
        #expect(finding.weight == .error)
        #expect(finding.text.hasPrefix("it has 3 partitions, wanted is 4"))
    }

    @Test("settings that may not be read are named as unchecked") func settingsThatMayNot() throws {
        var facts = topic(Self.data)
        facts.settings = nil
        let finding = try #require(findings(facts, Self.data).first)
        #expect(finding.weight == .warning)
        #expect(finding.text.contains("could not be checked") && finding.text.contains("retention.ms=-1"))
        #expect(finding.repair?.contains("--operation DescribeConfigs") == true)
    }
}
