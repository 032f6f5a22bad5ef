import Testing

@testable import ReelKafka

/// Tests the replication of a topic that follows another topic: it must be at least as safe.
@Suite struct TopicCopiesTests {
    private func copies(_ replicas: Int, _ inSync: Int) -> TopicCopies {
        var copies = TopicCopies(replicas: replicas)
        copies.inSync = inSync
        return copies
    }

    private func topic(_ replicas: [Int], _ settings: [String: String]?) -> TopicFacts {
        let partitions = replicas.map { TopicFacts.Partition(leader: 1, replicas: $0, inSync: 1) }
        return TopicFacts(name: "reel.x", partitions: partitions, settings: settings)
    }

    @Test("of three copies two must have a record", arguments: [(1, 1), (2, 1), (3, 2), (5, 2)])
    func ofThreeCopiesTwo(replicas: Int, inSync: Int) {
        #expect(TopicCopies(replicas: replicas) == copies(replicas, inSync))
    }

    @Test("a topic that is there is followed") func aTopicThatIs() {
        // The number of replicas that are in sync at the moment does not matter.
        #expect(TopicCopies(of: topic([3, 3], ["min.insync.replicas": "2"])) == copies(3, 2))
        #expect(TopicCopies(of: topic([5], ["min.insync.replicas": "3"])) == copies(5, 3))
        #expect(TopicCopies(of: topic([1], ["min.insync.replicas": "1"])) == copies(1, 1))
        #expect(TopicCopies(of: topic([2], ["min.insync.replicas": "3"])) == copies(2, 2), "nothing could be written")
        #expect(TopicCopies(of: topic([3], nil)) == copies(3, 2), "this user may not read the settings")
    }

    @Test("with another number no fewer must have a record") func withAnotherNumberNo() {
        #expect(copies(3, 2).with(replicas: 2) == copies(2, 2))
        #expect(copies(3, 2).with(replicas: 1) == copies(1, 1))
        #expect(copies(1, 1).with(replicas: 3) == copies(3, 2))
        #expect(copies(5, 3).with(replicas: 7) == copies(7, 3))
    }

    @Test("topics are made so") func topicsAreMadeSo() {
        #expect(TopicRole.data(partitions: 4).settings(copies(5, 3))["min.insync.replicas"] == "3")
        #expect(TopicRole.control.settings(copies(2, 2))["min.insync.replicas"] == "2")
        #expect(TopicRole.nodes.settings(copies(5, 3))["min.insync.replicas"] == nil)
    }
}
