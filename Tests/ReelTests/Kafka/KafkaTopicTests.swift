import Foundation
import ReelLab
import Testing

@testable import ReelTool

/// Tests that `reel topic` creates topics on a real broker, shows them, and finds their errors.
@Suite(.realKafka, .serialized, .timeLimit(.minutes(15))) struct KafkaTopicTests {
    private func topic(_ words: [String], _ kafka: LocalKafka) async -> CommandRun {
        await CommandRun(["topic"] + words + ["--log", "kafka:\(kafka.bootstrap)"])
    }

    /// Runs Kafka's own `kafka-configs` with the options of a repair that Reel names.
    private func repair(_ line: Substring, _ kafka: LocalKafka) throws {
        let words = try #require(line.split(separator: "to repair it: ").last).split(separator: " ").map(String.init)
        try #require(words.first == "kafka-configs.sh", "\(line)")
        try kafka.tool("kafka.admin.ConfigCommand", Array(words.dropFirst(3)))
    }

    @Test("concurrent topic create commands produce one log") func createsOneLog() async throws {
        let kafka = try LocalKafka(try RealKafka.home(), brokers: 1)
        let before = await topic(["check"], kafka)
        #expect(before.code == .badData)
        #expect(before.output.contains("to repair it: reel topic create --log kafka:\(kafka.bootstrap)"))
        let nodes = [
            ["gateway", "--listen", "127.0.0.1:0"],
            ["snapshot", "--listen", "127.0.0.1:0", "--data", kafka.folder.path + "/state"], ["dump"],
        ].map { $0 + ["--log", "kafka:\(kafka.bootstrap)"] }
        for node in nodes { try await BuiltProgram.complains(node, .badData, "there is no log at") }
        let create = ["topic", "create", "--partitions", "3", "--log", "kafka:\(kafka.bootstrap)"]
        let runs = await withTaskGroup(of: CommandRun.self) { group in
            for _ in 0..<3 { group.addTask { await CommandRun(create) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(runs.allSatisfy { $0.code == .done }, "\(runs.map(\.errors))")
        let epochs = Set(runs.compactMap { $0.output.firstMatch(of: /log ([0-9a-f]{16}), 3 partitions/)?.1 })
        let epoch = try #require(epochs.first)
        #expect(epochs.count == 1)
        // The topics that the slower runs created are removed.
        let topics = try kafka.topics("--list").split(separator: "\n").filter { $0.hasPrefix("reel.") }
        #expect(topics.sorted() == ["reel.\(epoch)", "reel.control", "reel.nodes"].sorted())

        let dump = ["dump", "--log", "kafka:\(kafka.bootstrap)", "--epoch"]
        #expect(await CommandRun(dump + ["\(epoch)"]).code == .done)
        let mistaken = await CommandRun(dump + ["0123456789abcdef"])
        #expect(mistaken.code == .usage)
        #expect(mistaken.errors.contains("expected is one of those at \(kafka.bootstrap): \(epoch)\n"), "\(mistaken)")

        let shown = await topic(["show"], kafka)
        #expect(shown.code == .done)
        #expect(shown.output.hasPrefix("epoch \(epoch), 3 partitions, number 0\n"))
        let other = await topic(["create", "--partitions", "4"], kafka)
        #expect(other.code == .done && other.errors.contains("--partitions is 4, but the log has 3;"), "\(other)")

        let data = "reel.\(epoch)"
        let wrong = ["retention.ms=60000", "unclean.leader.election.enable=true", "max.message.bytes=1000000"]
        let alter = ["--alter", "--entity-type", "topics", "--entity-name", data, "--add-config"]
        try kafka.tool("kafka.admin.ConfigCommand", alter + [wrong.joined(separator: ",")])
        let alterControl = ["--alter", "--entity-type", "topics", "--entity-name", "reel.control", "--add-config"]
        try kafka.tool("kafka.admin.ConfigCommand", alterControl + ["min.compaction.lag.ms=0"])
        let found = await topic(["check"], kafka)
        #expect(found.code == .badData)
        let errors = found.output.split(separator: "\n").filter { $0.hasPrefix("error: ") }
        #expect(errors.count == 4, "\(found.output)")
        #expect(errors.contains { $0.hasPrefix("error: \(data): retention.ms is 60000, wanted is -1: ") })
        #expect(errors.contains { $0.hasPrefix("error: reel.control: min.compaction.lag.ms is 0, wanted is ") })
        // A node does not start on this topic, and reports the same error.
        for node in nodes.prefix(2) {
            try await BuiltProgram.complains(node, .badData, "(and 3 more, see `reel topic check`)")
        }
        // Each named command repairs its own error.
        for error in errors { try repair(error, kafka) }
        let after = await topic(["check"], kafka)
        #expect(after.code == .done, "\(after.output)")

        try kafka.topics("--alter", "--topic", data, "--partitions", "5")
        let grown = await topic(["check"], kafka)
        #expect(grown.code == .badData)
        #expect(grown.output.contains("it has 5 partitions, wanted is 3"), "\(grown.output)")
        try kafka.topics("--delete", "--topic", data)
        let gone = await topic(["check"], kafka)
        #expect(gone.code == .badData)
        #expect(gone.output.contains("the topic is missing, though reel.control names it"), "\(gone.output)")
        for node in nodes { try await BuiltProgram.complains(node, .badData, data) }
        #expect(await topic(["create"], kafka).code == .done)
        #expect(!(try kafka.topics("--list")).contains(data))
    }

    @Test("topics are on as many brokers as was asked for") func topicsAreOnAs() async throws {
        let kafka = try LocalKafka(try RealKafka.home(), brokers: 2)
        let more = await topic(["create", "--replication", "3"], kafka)
        #expect(more.code != .done && more.errors.contains("replication factor"), "\(more)")
        // Without the option the factor would be two.
        let made = await topic(["create", "--replication", "1"], kafka)
        #expect(made.code == .done, "\(made)")
        let described = try kafka.topics("--describe").matches(of: /Topic: (reel\.\S+)\s.*ReplicationFactor: (\d+)/)
        #expect(described.count == 3 && described.allSatisfy { $0.2 == "1" }, "\(described.map { String($0.0) })")
    }
}
