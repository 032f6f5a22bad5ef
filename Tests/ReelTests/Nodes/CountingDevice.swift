import ReelClient
import ReelLab

/// A device whose events count themselves. Each event adds 1 to the `n` of its object, so `n` is
/// the number of consumed events.
final class CountingDevice: Sendable {
    let name: String
    let nodes: [String]
    private let file: String
    private let transport: NetTransport

    init(_ name: String, _ nodes: [String], in folder: TemporaryFolder) throws {
        self.name = name
        self.nodes = nodes
        file = "\(folder.path)/\(name).device"
        transport = try NetTransport()
    }

    /// Opens the device, with nodes that it can reach or without.
    func open(isOnline: Bool = true) throws -> SyncClient {
        let nodes = isOnline ? nodes : ["http://127.0.0.1:9"]
        return try SyncClient(nodes: nodes, store: .file(file), transport: transport)
    }

    func make(_ stream: SyncStream) async throws {
        try await stream.publish(.insert("counter", id: name, ["n": 0]))
    }

    func add(_ count: Int, _ stream: SyncStream) async throws {
        for _ in 0..<count {
            try await stream.publish(.update("counter", id: name, operations: ["n": .increment(1)]))
        }
    }

    /// Returns the number of consumed events from the device's own state.
    func count(on stream: SyncStream) -> Double? {
        let counter = try? stream.confirmed.object("counter", id: name)
        return counter?["n"]?.number
    }
}
