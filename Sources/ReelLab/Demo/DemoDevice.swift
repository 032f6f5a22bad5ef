import ReelBase
import ReelClient
import ReelCore

/// A device of a demo: a client with a name and its own store.
final class DemoDevice {
    let name: String
    let client: SyncClient
    private let cluster: DemoCluster

    init(
        _ name: String,
        _ cluster: DemoCluster,
        transport: NetTransport,
        gaps: SyncClient.GapSource = .connection
    ) throws {
        self.name = name
        self.cluster = cluster
        client = try SyncClient(
            nodes: cluster.gateways,
            store: .file("\(cluster.folder.path)/\(name).device"),
            transport: transport,
            gaps: gaps
        )
    }

    /// The name of the node that the device is connected with.
    var node: String {
        get async { client.status.connectedNode.map(cluster.name(of:)) ?? "no node" }
    }

    /// Waits until the device is connected.
    func connected() async throws {
        try await DemoWait.until("\(name) is connected") {
            try cluster.interruption.check()
            return client.status.connectedNode != nil
        }
    }
}

/// Waiting for a condition, with a time limit.
enum DemoWait {
    static let limitMs: Int64 = 30_000

    static func until(_ what: String, _ condition: () async throws -> Bool) async throws {
        let end = MonotonicClock.nowMs() + limitMs
        while try await !condition() {
            guard MonotonicClock.nowMs() < end else {
                throw ChildProcess.Failure(description: "waited \(limitMs / 1_000) s in vain until \(what)")
            }
            try await Task.sleep(for: .milliseconds(1))
        }
    }
}
