import Glibc
import ReelCore
import ReelNet

/// The nodes of a demo: two gateways and a snapshot node, each a process, on one SQLite log in a folder of its own.
final class DemoCluster {
    let folder: TemporaryFolder
    let log: String
    let a: LocalNode
    let b: LocalNode
    let snapshot: LocalNode
    let interruption: DemoInterruption
    private let http: LoopBound<HTTPClient>

    /// A log has more partitions than the demo has streams, so that each can have one for itself.
    static let partitions = 8

    init(reel: String, folder: TemporaryFolder) throws {
        self.folder = folder
        let loop = try EventLoop()
        http = try loop.sync { LoopBound(HTTPClient(on: loop), on: loop) }
        interruption = try DemoInterruption(on: loop)
        log = "sqlite:\(folder.path)/log.sqlite"
        let common = ["--log", log, "--partitions", "\(Self.partitions)"]
        func node(_ name: String, _ arguments: [String]) throws -> LocalNode {
            try LocalNode(name: name, reel: reel, arguments: arguments + common, folder: folder.path)
        }
        // One loop each: what one client has an ack for, every other client of that gateway has as its "now".
        a = try node("gateway-a", ["gateway", "--loops", "1"])
        b = try node("gateway-b", ["gateway", "--loops", "1"])
        snapshot = try node("snapshot", ["snapshot", "--data", folder.path + "/snapshot"])
    }

    deinit {
        http.loop.stop()
    }

    var nodes: [LocalNode] { [a, b, snapshot] }
    var gateways: [String] { [a.url, b.url] }

    func name(of url: String) -> String { nodes.first { $0.url == url }?.name ?? url }

    /// The body of a GET; throws unless the answer is 200.
    func get(_ node: LocalNode, _ target: String) async throws -> [UInt8] {
        let address = node.url.dropFirst("http://".count)
        guard let (host, port) = SocketAddress.split(String(address)) else { return [] }
        let response = try await http.fetch(HTTPClientRequest("GET", host: host, port: port, target: target))
        guard response.status == 200 else {
            throw ChildProcess.Failure(description: "\(node.name) answered \(target) with \(response.status)")
        }
        return response.body
    }

    /// A name for each stream so that no two share a partition, and seqs of a stream follow each other.
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
