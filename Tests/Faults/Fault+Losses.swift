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
                let (topic, stream) = (scene.topic, scene.streams[0])
                let read = try await scene.heads(of: scene.nodes.gateways[0])
                try await scene.eventually("all is folded") {
                    try await scene.heads(of: scene.nodes.snapshots[0]) == read
                }
                let (before, events) = (try await scene.objects(), try await scene.events(of: stream))
                try scene.kafka.tool("org.apache.kafka.tools.TopicCommand", ["--delete", "--topic", topic])
                try await scene.eventually("the topic is gone") {
                    ((try? scene.partitions()) ?? []).isEmpty
                }
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
                let after = try? await scene.events(of: stream)
                guard after == nil || after == events else { throw Scene.NoEffect("events have changed") }

                // Whoever published has gone; what was folded is there, so nothing is lost.
                let report = try await scene.newEpoch("--from-snapshot", "\(scene.folder)/snapshot-a")
                try report.write(toFile: "\(scene.folder)/epoch-new", atomically: true, encoding: .utf8)
                try await scene.eventually("the objects are as before") { (try? await scene.objects()) == before }
                try await scene.eventually("a publish is taken") { try await scene.publish(to: stream).status == 200 }
                return "publish: 503, log: unavailable; from the snapshot: \(before.count) objects as before"
            }
        ) { scene in
            try await scene.acks(1_000)
            return "nothing yet"
        },
    ]
}
