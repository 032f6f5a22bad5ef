import Foundation
import ReelCore
import ReelLab

/// What takes records away that somebody still wants: who cannot go on says so, and nobody serves anything wrong.
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
        Fault(
            name: "data topic deleted",
            aftermath: { scene in
                let before = try await scene.events(of: scene.streams[0])
                try scene.kafka.tool("org.apache.kafka.tools.TopicCommand", ["--delete", "--topic", scene.topic])
                try await scene.eventually("the topic is gone") {
                    ((try? scene.partitions()) ?? []).isEmpty
                }
                var said = (status: 0, body: "")
                try await scene.eventually("a publish is refused") {
                    said = try await scene.publish(to: scene.streams[0])
                    return said.status != 200
                }
                var state = ""
                try await scene.eventually("the log's state says so") {
                    state = try await scene.logState()
                    return state != "ok"
                }
                guard said.status == 503 else { throw Scene.NoEffect("a publish: \(said.status), \(said.body)") }
                let after = try? await scene.events(of: scene.streams[0])
                guard after == nil || after == before else { throw Scene.NoEffect("events have changed") }
                return "publishes: 503, log: \(state), \(after == nil ? "no" : "the same") old events"
            }
        ) { scene in
            try await scene.acks(1_000)
            return "nothing yet"
        },
    ]
}
