import Foundation
import ReelClient
import ReelCore
import ReelLab

/// Faults in which the epoch ends, and another epoch continues with its state.
extension Fault {
    static let epochs: [Fault] = [
        Fault(name: "epoch changed, devices offline", needsKafka: false) { scene in
            let old = scene.epoch
            let devices = try await AwayDevices(5, of: scene)
            try await devices.publish(20)
            try await devices.goAway(with: 20)
            let report = try await scene.newEpoch("--partitions", "8")
            try scene.dump(to: "log-\(old).jsonl", epoch: old)
            try await scene.acks(500)
            try await devices.comeBack()
            let counted = try await devices.total(5 * 40)
            let took = report.split(separator: "\n").last.map(String.init) ?? ""
            return "\(old)→\(scene.epoch), \(took); 100 queued events came, \(counted) counted"
        }
    ]
}

/// Devices that increment one counter. They go offline with events in their queues, and reconnect.
private final class AwayDevices {
    private let scene: Scene
    private let transport: NetTransport
    private let count: Int
    private var clients: [SyncClient] = []

    private static let stream = "away"

    init(_ count: Int, of scene: Scene) async throws {
        self.scene = scene
        self.count = count
        transport = try NetTransport()
        try connect(scene.nodes.gateways.map(\.url))
        let first = try await clients[0].open(Self.stream)
        try await first.publish(.insert("counter", id: "1", ["total": 0])).acked()
    }

    private func connect(_ nodes: [String]) throws {
        clients = try (0..<count).map {
            try SyncClient(nodes: nodes, store: .file("\(scene.folder)/away-\($0).device"), transport: transport)
        }
    }

    /// Increments the counter `times` times on each device, and waits for the acks.
    func publish(_ times: Int) async throws {
        for client in clients {
            let stream = try await client.open(Self.stream)
            var last: PublishHandle?
            for _ in 0..<times {
                last = try await stream.publish(.update("counter", id: "1", operations: ["total": .increment(1)]))
            }
            _ = try await last?.acked()
        }
    }

    /// Takes the devices offline, and increments the counter `times` times on each of them.
    func goAway(with times: Int) async throws {
        for client in clients { await client.close() }
        try connect(["http://127.0.0.1:1"])
        for client in clients {
            let stream = try await client.open(Self.stream)
            for _ in 0..<times {
                _ = try await stream.publish(.update("counter", id: "1", operations: ["total": .increment(1)]))
            }
        }
    }

    /// Connects the devices to the nodes again.
    func comeBack() async throws {
        for client in clients { await client.close() }
        try connect(scene.nodes.gateways.map(\.url))
        for client in clients { _ = try await client.open(Self.stream) }
    }

    /// Waits until a node reports the expected total, and checks two seconds later that it is not exceeded.
    func total(_ expected: Int) async throws -> Int {
        func counted() async throws -> Int {
            let node = scene.nodes.gateways[0]
            let body = try await scene.get(node, "/v1/streams/\(Self.stream)/objects/counter/1")
            let object = try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]
            let field = (object?["fields"] as? [String: [Int]])?["total"]
            return field?.first ?? -1
        }
        try await scene.eventually("\(expected) are counted") { try await counted() >= expected }
        try await scene.seconds(2)
        for client in clients { await client.close() }
        let counted = try await counted()
        guard counted == expected else { throw Scene.NoEffect("\(counted) counted, expected \(expected)") }
        return counted
    }
}
