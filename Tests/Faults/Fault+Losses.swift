import Foundation
import ReelCore
import ReelLab

/// Faults that remove records that a node still needs. A node that cannot continue must report this, and no node may
/// serve wrong data.
extension Fault {
    static let losses: [Fault] = [
        Fault(name: "log trimmed under sleeping nodes", snapshots: 2) { scene in
            let peer = try KafkaPeer(try scene.kafka.bootstrap)
            let (gateway, snapshot) = (scene.nodes.gateways[1], scene.nodes.snapshots[1])
            for node in [gateway, snapshot] { node.process.pause() }
            try await scene.eventually("they sleep") { [gateway, snapshot].allSatisfy { $0.process.state == "T" } }
            let slept = try await scene.heads(of: scene.nodes.gateways[0])
            try await scene.acks(4_000)
            let heads = try await scene.heads(of: scene.nodes.gateways[0])
            try scene.dump(to: "log-\(scene.epoch)-before.jsonl")
            let trimmed = heads.filter { $0.value > slept[$0.key, default: -1] + 100 }.mapValues { $0 - 50 }
            guard !trimmed.isEmpty else { throw Scene.NoEffect("no partition grew by 100 events") }
            try peer.deleteRecords(scene.topic, below: trimmed)
            for node in [gateway, snapshot] { node.process.resume() }
            try await scene.eventually("gateway-b has gone on behind what is trimmed") {
                let now = try await scene.heads(of: gateway)
                return trimmed.allSatisfy { now[$0.key, default: -1] >= $0.value }
            }
            try await scene.eventually("snapshot-b says that it cannot go on") {
                let stops = try String(contentsOfFile: snapshot.log, encoding: .utf8).split(separator: "\n")
                    .filter { $0.contains("folding stopped") && $0.contains("code=truncated") }
                return trimmed.keys.allSatisfy { partition in stops.contains { $0.contains("partition=\(partition) ") }
                }
            }
            return "\(trimmed.count) partitions trimmed; gateway-b goes on, snapshot-b says truncated"
        },
        Fault(name: "data topic deleted") { scene in
            let (topic, old, stream) = (scene.topic, scene.epoch, scene.streams[0])
            let partitions = try scene.partitions().count
            // The snapshot node is paused so that it lags. Then something is lost, and the command must print
            // it.
            let snapshot = scene.nodes.snapshots[0]
            let folded = try await scene.heads(of: snapshot)
            snapshot.process.pause()
            try await scene.eventually("it sleeps") { snapshot.process.state == "T" }
            try await scene.acks(500)
            try scene.kafka.tool("org.apache.kafka.tools.TopicCommand", ["--delete", "--topic", topic])
            var deleted: DeletedTopic?
            try await scene.eventually("the topic is gone") {
                deleted = try DeletedTopic(topic, partitions: partitions, of: scene.kafka, into: scene.folder)
                return deleted != nil
            }
            snapshot.process.resume()
            var said = (status: 0, body: "")
            try await scene.eventually("a publish is refused") {
                said = try await scene.publish(to: stream)
                return said.status != 200
            }
            guard said.status == 503 else { throw Scene.NoEffect("a publish: \(said.status), \(said.body)") }
            for gateway in scene.nodes.gateways {
                try await scene.eventually("\(gateway.name) says that \(topic) cannot be read") {
                    let (word, detail) = try await scene.logState(of: gateway)
                    return word == "unavailable" && detail.contains(topic)
                }
            }

            // These are the steps of docs/operations/epochs.md, done while all nodes run.
            let report = try await scene.newEpoch("--from-snapshot", "\(scene.folder)/snapshot-a")
            try report.write(toFile: "\(scene.folder)/\(old).epoch.txt", atomically: true, encoding: .utf8)
            try await scene.acks(2_000)
            try deleted?.dump(to: "\(scene.folder)/log-\(old).jsonl")
            let lost = try report.split(separator: "\n").filter { $0.contains("; lost: ") }.map { line in
                let match = line.firstMatch(of: /^partition (\d+) begins (?:empty|with the state of seq (\d+));/)
                guard let match, let partition = Int(match.1) else { throw Scene.NoEffect("printed: \(line)") }
                let (kept, before) = (match.2.flatMap { Seq($0) } ?? -1, folded[partition, default: -1])
                guard kept >= before else { throw Scene.NoEffect("folded up to seq \(before) before: \(line)") }
                return partition
            }
            guard !lost.isEmpty else { throw Scene.NoEffect("nothing was printed as lost") }
            return "publish: 503, log: unavailable; \(old)→\(scene.epoch), losses printed of \(lost.count) partitions"
        },
    ]
}
