import ReelCore
import ReelLab

/// Faults by other writers to the topic.
extension Fault {
    static let records: [Fault] = [
        Fault(name: "foreign and misplaced records", isShort: true) { scene in
            let kafka = try scene.kafka
            let topic = scene.topic
            let peer = try KafkaPeer(kafka.bootstrap)
            let before = try await scene.voids()
            let partitions = try scene.partitions().count
            let stream = scene.streams[0]
            let home = stream.partition(of: partitions)
            for round in 0..<20 {
                let event = Self.event(op: round, site: 1)
                // Each round writes text that is not JSON, null, an event without a key, and an event in the wrong
                // partition. Then it writes an event that is not canonical JSON, and a record that looks like a
                // barrier. Half of them have a witness that does not match.
                try peer.copy(topic, round % partitions, key: "somebody", value: "hello")
                try peer.produce(topic, round % partitions, key: "\(stream)", value: nil)
                try peer.produce(topic, round % partitions, key: nil, value: event)
                try peer.copy(topic, (home + 1) % partitions, key: "\(stream)", value: event)
                try peer.produce(topic, home, key: "\(stream)", value: " " + event)
                try peer.copy(topic, round % partitions, key: "~reel", value: #"{"type":"update"}"#)
            }
            try peer.flush()
            try await scene.eventually("all 120 are counted as void") { try await scene.voids() >= before + 120 }
            let found = try await scene.voids() - before
            guard found == 120 else { throw Scene.NoEffect("\(found) of 120 records are void") }
            return "120 records, \(found) void"
        },
        Fault(name: "a transaction's marker", isShort: true) { scene in
            let kafka = try scene.kafka
            let topic = scene.topic
            let peer = try KafkaPeer(kafka.bootstrap, ["transactional.id": "peer-\(topic)"])
            let before = try await scene.voids()
            let stream = scene.streams[0]
            let home = stream.partition(of: try scene.partitions().count)
            try peer.beginTransactions()
            for round in 0..<10 {
                try peer.transaction(commits: true) {
                    try peer.produce(topic, home, key: "\(stream)", value: Self.event(op: round, site: 2))
                }
            }
            try await scene.eventually("10 markers are counted as void") { try await scene.voids() >= before + 10 }
            let found = try await scene.voids() - before
            guard found == 10 else { throw Scene.NoEffect("\(found) voids for 10 markers") }
            return "10 transactions, \(found) void"
        },
        Fault(name: "a partition added") { scene in
            let kafka = try scene.kafka
            let topic = scene.topic
            let before = try scene.partitions().count
            try kafka.tool(
                "org.apache.kafka.tools.TopicCommand",
                ["--alter", "--topic", topic, "--partitions", "\(before + 1)"]
            )
            try await scene.eventually("it is there") { try scene.partitions().count == before + 1 }
            try await scene.acks(2_000)
            return "\(before)→\(before + 1) partitions"
        },
    ]

    /// Returns a valid event of a site that no other client has.
    static func event(op: Int, site: Int) -> String {
        let id = "00000000-0000-4000-8000-00000000000\(site)"
        return #"{"base":-1,"id":"x","model":"peer","op":\#(op),"site":"\#(id)","type":"insert"}"#
    }
}
