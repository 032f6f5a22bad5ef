import Foundation
import ReelCore
import ReelLab

/// The records of a deleted topic. A broker keeps the files of its partitions for a minute under other names. The
/// longest copy of a partition contains all acknowledged events.
struct DeletedTopic {
    private let home: KafkaHome
    /// The copied file of each partition.
    private let copies: [String]

    /// Copies the files of three brokers into `folder`. Returns nil as long as a broker has not yet deleted all
    /// partitions.
    init?(_ topic: String, partitions: Int, of kafka: LocalKafka, into folder: String) throws {
        guard let home = try KafkaHome.named() else { return nil }
        self.home = home
        func size(_ path: String) throws -> Int {
            try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
        }
        var longest: [String] = []
        for partition in 0..<partitions {
            let files = try (1...3).flatMap { broker in
                let data = "\(kafka.folder.path)/\(broker)/data"
                return try FileManager.default.contentsOfDirectory(atPath: data)
                    .filter { $0.hasPrefix("\(topic)-\(partition).") && $0.hasSuffix("-delete") }
                    .map { "\(data)/\($0)/00000000000000000000.log" }
            }
            guard files.count == 3, let file = try files.max(by: { try size($0) < size($1) }) else { return nil }
            longest.append(file)
        }
        copies = longest.indices.map { "\(folder)/\($0).log" }
        for (file, copy) in zip(longest, copies) { try FileManager.default.copyItem(atPath: file, toPath: copy) }
    }

    /// Writes the records in the format of `reel dump`. Kafka's own tool reads the files.
    func dump(to path: String) throws {
        var lines: [String] = []
        for (partition, copy) in copies.enumerated() {
            let printed = try home.run("kafka.tools.DumpLogSegments", ["--files", copy, "--print-data-log"])
            for match in printed.matches(of: /\| offset: (\d+) .*? headerKeys: \[[^\]]*\] key: (\S+) payload: (.*)/) {
                let value = try JSONSerialization.data(withJSONObject: String(match.3), options: .fragmentsAllowed)
                lines.append(
                    #"{"partition":\#(partition),"seq":\#(match.1),"key":"\#(match.2)","value":"#
                        + String(decoding: value, as: UTF8.self) + "}\n"
                )
            }
        }
        try lines.joined().write(toFile: path, atomically: true, encoding: .utf8)
    }
}
