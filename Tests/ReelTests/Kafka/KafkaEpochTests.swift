import Foundation
import ReelClient
import ReelCore
import ReelLab
import ReelNet
import Synchronization
import TestSupport
import Testing

/// Tests `reel epoch new` on a real broker, while nodes and devices work.
@Suite(.realKafka, .serialized, .timeLimit(.minutes(8))) struct KafkaEpochTests {
    /// A deployment with a snapshot node, streams with a state, and a device.
    private struct Ground {
        let deployment: KafkaDeployment
        let snapshot: NodeProcess
        let device: CountingDevice

        static let streams = (0..<8).map { "stream-\($0)" }

        init() async throws {
            deployment = try await KafkaDeployment()
            snapshot = try NodeProcess(
                ["snapshot", "--log", deployment.log, "--data", deployment.folder.path + "/state"],
                in: deployment.folder,
                name: "snapshot"
            )
            device = try CountingDevice("device", [deployment.gateway.url], in: deployment.folder)
            for (number, stream) in Self.streams.enumerated() {
                let site = "00000000-0000-4000-8000-" + String(2_000_000_000_000 + number).dropFirst()
                let events = [
                    #""type":"insert","id":"kept","fields":{"n":\#(number)}"#, #""type":"insert","id":"dead""#,
                    #""type":"delete","id":"dead""#,
                    #""type":"update","id":"kept","fields":{"t":"x","n":\#(number + 1)}"#,
                ].enumerated().map { #"{"site":"\#(site)","op":\#($0),"model":"m",\#($1)}"# }
                let answer = try await deployment.gateway.ask(
                    "POST",
                    "/v1/streams/\(stream)/events",
                    body: #"{"events":[\#(events.joined(separator: ","))]}"#
                )
                try #require(answer.status == 200)
            }
        }

        /// Runs `reel epoch new`.
        func change(_ words: String...) async throws -> BuiltProgram.Run {
            try await BuiltProgram.run(["epoch", "new", "--log", deployment.log] + words)
        }

        /// Returns the epoch and the number of the log that a node uses; nil if the node does not answer.
        func log(of node: NodeProcess) async -> (epoch: String, number: Int)? {
            guard let cluster = try? await node.members("/v1/cluster"), let epoch = cluster["epoch"] as? String,
                let number = cluster["number"] as? Int
            else { return nil }
            return (epoch, number)
        }

        /// Waits until both nodes use a log with this number or a later one.
        func haveGoneOver(to number: Int) async throws {
            for node in [deployment.gateway, snapshot] {
                try await eventually("\(node.name) is at log number \(number)") {
                    await log(of: node)?.number ?? -1 >= number
                }
            }
        }

        /// Returns the state of the streams without values that depend on the log; nil if the node does not answer.
        func state() async throws -> Set<String>? {
            var state: Set<String> = []
            for stream in Self.streams {
                guard let answer = try? await snapshot.ask("GET", "/v1/streams/\(stream)/snapshot"),
                    answer.status == 200
                else { return nil }
                let lines = try answer.body.split(separator: 0x0a).map {
                    try JSONSerialization.jsonObject(with: Data($0)) as? [String: Any] ?? [:]
                }
                let sites = lines.first?["sites"] as? [String] ?? []
                for line in lines.dropFirst() {
                    if let object = line["object"] as? [String], let fields = line["fields"] as? [String: [Any]] {
                        let values = fields.map { "\($0)=\($1[0])" }.sorted()
                        state.insert("\(stream) \(object) \(values)")
                    } else if let object = line["deleted"] as? [String] {
                        state.insert("\(stream) \(object) is deleted")
                    } else if let site = line["site"] as? Int, let op = line["op"] as? Int {
                        state.insert("\(stream) \(sites[site]) op \(op)")
                    }
                }
            }
            return state
        }

        /// Returns the state once all published events are folded.
        func settled() async throws -> Set<String> {
            var found: Set<String> = []
            try await eventually("each stream has an object, a tombstone and a site") {
                found = try await state() ?? []
                return found.count == 3 * Self.streams.count
            }
            return found
        }

        /// Waits until the snapshot node holds this state again.
        func holds(_ expected: Set<String>) async throws {
            try await eventually("the same state as before") { try await state() == expected }
        }
    }

    @Test("a new epoch with any number of partitions has the state, and devices continue") func aNewEpochWith()
        async throws
    {
        let ground = try await Ground()
        let before = try await ground.settled()
        let client = try ground.device.open()
        let stream = try await client.open("todo")
        try await ground.device.make(stream)
        var added = 0
        for (number, partitions) in [(1, 8), (2, 3), (3, 3)] {
            let other = number == 3 ? [] : ["--partitions", "\(partitions)"]
            let words = ["epoch", "new", "--log", ground.deployment.log] + other
            let hasEnded = Atomic(false)
            async let change = {
                defer { hasEnded.store(true, ordering: .relaxed) }
                return try await BuiltProgram.run(words)
            }()
            repeat {
                try await ground.device.add(2, stream)
                added += 2
                try await eventually("they are consumed, or the epoch has changed") {
                    stream.status.pendingCount == 0 || hasEnded.load(ordering: .relaxed)
                }
            } while !hasEnded.load(ordering: .relaxed)
            let run = try await change
            #expect(run.code == 0, "\(run)")
            #expect(run.output.contains("\(partitions) partitions, log number \(number)"), "\(run)")
            #expect(!run.output.contains("; lost: "), "\(run)")
            try await ground.haveGoneOver(to: number)
        }
        try await eventually("all is consumed") { stream.status.pendingCount == 0 }
        #expect(ground.device.count(on: stream) == Double(added))
        try await ground.holds(before)
        let epoch = try #require(await ground.log(of: ground.snapshot)?.epoch)
        let topic = try ground.deployment.kafka.topics("--describe", "--topic", "reel.\(epoch)")
        #expect(topic.contains("PartitionCount: 3"), "\(topic)")
        let check = try await BuiltProgram.run(["topic", "check", "--log", ground.deployment.log])
        #expect(check.code == 0, "\(check)")
        await client.close()
    }

    @Test("a new epoch has as many copies as the one before though a broker is down") func aNewEpochHas() async throws {
        let kafka = try LocalKafka(try RealKafka.home(), brokers: 3)
        let log = ["--log", "kafka:\(kafka.bootstrap)"]
        let made = try await BuiltProgram.run(["topic", "create", "--partitions", "2"] + log)
        try #require(made.code == 0 && !made.errors.contains("each event is on"), "\(made)")
        let first = try #require(made.output.firstMatch(of: /created log ([0-9a-f]{16}),/)?.1)
        let old = "reel.\(first)"
        kafka.kill(3)
        try await eventually("broker 3 is missed") {
            try kafka.topics("--describe", "--topic", old, "--under-replicated-partitions").contains(old)
        }

        let refused = try await BuiltProgram.run(["epoch", "new", "--replication", "4"] + log)
        #expect(refused.code != 0 && refused.errors.contains("say with --replication how many"), "\(refused)")
        let dump = try await BuiltProgram.run(["dump"] + log)
        #expect(dump.code == 0 && dump.output.isEmpty, "the epoch has not ended: \(dump)")

        for (number, words, shape) in [
            (1, [], ("ReplicationFactor: 3", "min.insync.replicas=2")),
            (2, ["--replication", "1"], ("ReplicationFactor: 1", "min.insync.replicas=1")),
            (3, [], ("ReplicationFactor: 1", "min.insync.replicas=1")),
        ] as [(Int, [String], (String, String))] {
            let run = try await BuiltProgram.newEpoch(words + log)
            #expect(run.code == 0 && run.output.contains("2 partitions, log number \(number)\n"), "\(run)")
            #expect(run.errors.contains("each event is on 1 broker, expected are 3") == (number == 3), "\(run)")
            let epoch = try #require(run.output.firstMatch(of: /new epoch ([0-9a-f]{16}):/)?.1)
            let topic = try kafka.topics("--describe", "--topic", "reel.\(epoch)")
            #expect(topic.contains(shape.0) && topic.contains(shape.1), "\(topic)")
        }
    }

    @Test("an operator can run epoch new again after a kill at any moment") func repeatsKilledKafkaChange() async throws
    {
        var numbers = SeededNumbers(TestSeed.value)
        let ground = try await Ground()
        let before = try await ground.settled()
        let client = try ground.device.open()
        let stream = try await client.open("todo")
        try await ground.device.make(stream)
        try await ground.device.add(30, stream)
        let start = ContinuousClock.now
        #expect(try await ground.change().code == 0)
        let whole = Int((ContinuousClock.now - start) / .milliseconds(1))
        for _ in 0..<6 * effort {
            let words = ["epoch", "new", "--log", ground.deployment.log]
            let process = try ChildProcess(
                BuiltProgram.path,
                words,
                errorLog: ground.deployment.folder.path + "/operator.log"
            )
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...whole, using: &numbers)))
            process.killNow()
            try await ground.device.add(5, stream)
        }
        let run = try await ground.change()
        #expect(run.code == 0 && !run.output.contains("; lost: "), "\(run)")
        let number = try #require(run.output.firstMatch(of: /log number (\d+)/).flatMap { Int($0.1) })
        try await ground.haveGoneOver(to: number)
        try await eventually("all is consumed") { stream.status.pendingCount == 0 }
        #expect(ground.device.count(on: stream) == Double(30 + 30 * effort))
        try await ground.holds(before)
        await client.close()
    }

    @Test("of two operators at once none spoils the others work") func ofTwoOperatorsAt() async throws {
        let ground = try await Ground()
        let before = try await ground.settled()
        var last = 0
        for round in 0..<2 {
            let words = ["epoch", "new", "--log", ground.deployment.log]
            let runs = try await withThrowingTaskGroup(of: BuiltProgram.Run.self) { group in
                for _ in 0..<2 { group.addTask { try await BuiltProgram.run(words) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(runs.contains { $0.code == 0 }, "round \(round): \(runs)")
            for run in runs where run.code != 0 { #expect(run.errors.contains("conflict"), "\(run)") }
            let made = runs.compactMap { $0.output.firstMatch(of: /log number (\d+)/).flatMap { Int($0.1) } }
            let number = try #require(made.max())
            #expect((last + 1...last + 2).contains(number), "\(runs)")
            last = number
            try await ground.haveGoneOver(to: number)
            try await ground.holds(before)
        }
    }

    @Test("where the topic or all that knew it is lost the next epoch begins with the snapshot") func whereTheTopicOr()
        async throws
    {
        let ground = try await Ground()
        let before = try await ground.settled()
        let client = try ground.device.open()
        let stream = try await client.open("todo")
        try await ground.device.make(stream)
        try await ground.device.add(20, stream)
        try await eventually("all is consumed") { stream.status.pendingCount == 0 }
        _ = try await ground.snapshot.snapshot(of: "todo", upTo: stream.status.seq)
        let kafka = ground.deployment.kafka
        for (number, lost) in [(1, ["data"]), (2, ["data", "control"])] {
            let epoch = try #require(await ground.log(of: ground.snapshot)?.epoch)
            for node in [ground.deployment.gateway, ground.snapshot] { node.process.killNow() }
            for name in lost {
                let topic = name == "data" ? "reel.\(epoch)" : "reel.control"
                try kafka.topics("--delete", "--topic", topic)
                try await eventually("\(topic) is gone") {
                    try !kafka.topics("--list").split(separator: "\n").contains { $0 == topic }
                }
            }
            let without = try await ground.change()
            #expect(without.code != 0, "\(without)")
            let run = try await ground.change(
                "--from-snapshot",
                ground.deployment.folder.path + "/state",
                "--partitions",
                "\(KafkaDeployment.partitions)"
            )
            #expect(run.code == 0, "\(run)")
            #expect(run.output.contains("log number \(number)\n"), "\(run)")
            #expect(run.output.contains("lost: what followed, if anything did"), "\(run)")
            for node in [ground.deployment.gateway, ground.snapshot] { try node.restart() }
            try await ground.haveGoneOver(to: number)
            try await ground.holds(before)
            try await ground.device.add(5, stream)
            try await eventually("the device has sent all") { stream.status.pendingCount == 0 }
            #expect(ground.device.count(on: stream) == Double(20 + 5 * number))
            _ = try await ground.snapshot.snapshot(of: "todo", upTo: stream.status.seq)
        }
        await client.close()
    }
}
