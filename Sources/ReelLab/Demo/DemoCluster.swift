import Glibc
import ReelCore
import ReelNet

/// The nodes of a demo: two gateways and a snapshot node, with all their files in one folder.
final class DemoCluster {
    let folder: TemporaryFolder
    let interruption: DemoInterruption
    let brokers: LocalKafka?
    private let cluster: LocalCluster

    /// The number of partitions. It is larger than the number of streams, so that each stream can have its own
    /// partition.
    static let partitions = 8

    /// Starts the nodes on three brokers of this Kafka, or on a SQLite log if it is nil.
    init(reel: String, folder: TemporaryFolder, kafka home: KafkaHome?) throws {
        self.folder = folder
        brokers = try home.map { try LocalKafka($0, brokers: 3) }
        var log = "sqlite:\(folder.path)/log.sqlite"
        if let brokers {
            log = "kafka:\(brokers.bootstrap)"
            let create = ["topic", "create", "--log", log, "--partitions", "\(Self.partitions)"]
            try ChildProcess.output(of: reel, create)
        }
        cluster = try LocalCluster(
            reel: reel,
            log: log,
            folder: folder.path,
            common: ["--partitions", "\(Self.partitions)"]
        )
        interruption = try DemoInterruption(on: cluster.loop)
    }

    var log: String { cluster.log }
    var a: LocalNode { cluster.gateways[0] }
    var b: LocalNode { cluster.gateways[1] }
    var snapshot: LocalNode { cluster.snapshots[0] }
    var nodes: [LocalNode] { cluster.nodes }
    var gateways: [String] { cluster.gateways.map(\.url) }

    func name(of url: String) -> String { nodes.first { $0.url == url }?.name ?? url }
    func get(_ node: LocalNode, _ target: String) async throws -> [UInt8] { try await cluster.get(node, target) }
    func end() { cluster.end() }

    /// Returns a name for each stream so that no two share a partition, and the seqs of a stream have no gaps. The
    /// demo's names are chosen so that they need no number, which would only confuse a reader.
    static func streamNames(_ wanted: [String]) -> [String] {
        var taken: Set<Int> = []
        return wanted.map { name in
            var number = 1
            while true {
                let candidate = number == 1 ? name : "\(name)-\(number)"
                if let stream = StreamName(candidate), taken.insert(stream.partition(of: partitions)).inserted {
                    return candidate
                }
                number += 1
            }
        }
    }
}
