import Foundation
import ReelCore
import ReelLab
import ReelNet
import TestSupport
import Testing

/// One broker, a log on it, and a gateway.
final class KafkaDeployment {
    let kafka: LocalKafka
    let folder: TemporaryFolder
    let gateway: NodeProcess
    let epoch: String

    static let partitions = 5

    init() async throws {
        kafka = try LocalKafka(try RealKafka.home(), brokers: 1)
        folder = try TemporaryFolder(prefix: "reel-kafka-test-")
        let log = "kafka:\(kafka.bootstrap)"
        let made = try await BuiltProgram.run(["topic", "create", "--log", log, "--partitions", "\(Self.partitions)"])
        try #require(made.code == 0, "\(made)")
        gateway = try NodeProcess(["gateway", "--log", log], in: folder, name: "gateway")
        epoch = try #require(try await gateway.members("/v1/cluster")["epoch"] as? String)
    }

    var log: String { "kafka:\(kafka.bootstrap)" }
    var topic: String { "reel.\(epoch)" }

    /// A record as a reader gets it.
    struct Record: Hashable, CustomStringConvertible {
        var partition: Int
        var seq: Int
        var key: String
        var value: String

        var description: String { "\(partition):\(seq) \(key) \(value)" }
    }

    /// Returns the records that `reel dump` prints with these options.
    func dump(_ words: String...) async throws -> [Record] {
        let run = try await BuiltProgram.run(["dump", "--log", log] + words, seconds: 600)
        try #require(run.code == 0, "\(run)")
        return try run.output.split(separator: "\n").compactMap { line -> Record? in
            let record = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            // The marker of a transaction takes a seq.
            if record?["empty"] != nil { return nil }
            return Record(
                partition: try #require(record?["partition"] as? Int),
                seq: try #require(record?["seq"] as? Int),
                key: try #require(record?["key"] as? String),
                value: try #require(record?["value"] as? String)
            )
        }
    }

    /// Returns the number of void records that the gateway has counted, by reason.
    func voids() async throws -> [String: Int] {
        let metrics = String(decoding: try await gateway.ask("GET", "/metrics").body, as: UTF8.self)
        var voids: [String: Int] = [:]
        for match in metrics.matches(of: /reel_gateway_void_records_total\{reason="(\w+)"\} (\d+)/) {
            if let count = Int(match.2), count > 0 { voids[String(match.1)] = count }
        }
        return voids
    }

    /// Returns the last record of the longest partition, at or after the last seq that the gateway has read.
    func last() async throws -> Record? {
        let metrics = String(decoding: try await gateway.ask("GET", "/metrics").body, as: UTF8.self)
        let heads = metrics.matches(of: /reel_gateway_seq\{partition="(\d+)"\} (-?\d+)/)
        let longest = try #require(heads.max { Int($0.2) ?? -1 < Int($1.2) ?? -1 })
        let seq = try #require(Int(longest.2))
        return try await dump("--partition", String(longest.1), "--after", "\(seq - 1)").last
    }

    /// Waits until the gateway has read all records of the log.
    func settled() async throws {
        let records = try await dump()
        for partition in 0..<Self.partitions {
            guard let last = records.last(where: { $0.partition == partition }) else { continue }
            try await eventually("the gateway has read \(partition):\(last.seq)") {
                String(decoding: try await gateway.ask("GET", "/metrics").body, as: UTF8.self)
                    .contains("reel_gateway_seq{partition=\"\(partition)\"} \(last.seq)\n")
            }
        }
    }

    /// Returns a valid event that creates an object, in the form of a record, for a publisher without a gateway.
    static func event(_ site: Int, op: Int = 0) -> String {
        let id = "00000000-0000-4000-8000-" + String(1_000_000_000_000 + site).dropFirst()
        return EventText.logged("insert", id, op, model: "peer", id: "\(op)").text
    }
}
