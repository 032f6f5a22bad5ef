import CDeviceFloor
import Foundation
import ReelClient
import ReelLab

/// Measures a device with a long queue that connects to `reel serve`.
enum DeviceDrain {
    private static let (rounds, edits) = (5, 10_000)

    @Sendable static func run() async throws -> [Measured] {
        var (ours, floor): ([Double], [Double]) = ([], [])
        try await withFolder { folder in
            try await withReel(["serve", "--data", folder], in: folder) { node in
                let device = folder + "/device.sqlite"
                try await makeObjects(on: node, device)
                for round in 0..<rounds {
                    try await queueEdits("edit \(round)", device)
                    floor.append(try bareSQLite(folder + "/floor-\(round).sqlite", like: device))
                    ours.append(try await drain(to: node, device))
                }
            }
        }
        let work = "\(edits) offline edits of \(edits) objects, from the connect until the queue is empty"
        return [
            Measured(work: work, value: median(ours), unit: "s", goal: .atMost(0.3)),
            Measured(work: work, value: median(ours), unit: "s", peer: ("bare SQLite, without a node", median(floor))),
        ]
    }

    private static func makeObjects(on node: LocalNode, _ device: String) async throws {
        let client = try SyncClient(nodes: [node.url], store: .file(device))
        let stream = try await client.open("bench")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<64 {
                group.addTask {
                    for number in stride(from: task, to: edits, by: 64) {
                        try await stream.publish(DeviceEvents.insert(number))
                    }
                }
            }
            try await group.waitForAll()
        }
        try await wait(for: stream)
        await client.close()
    }

    private static func queueEdits(_ value: String, _ device: String) async throws {
        let client = try SyncClient(nodes: [], store: .file(device))
        let stream = try await client.open("bench")
        try await DeviceEvents.publishUpdates(of: 0..<edits, value, to: stream)
        await client.close()
    }

    /// Returns the seconds from the start of the client until its queue is empty.
    private static func drain(to node: LocalNode, _ device: String) async throws -> Double {
        let start = ContinuousClock.now
        let client = try SyncClient(nodes: [node.url], store: .file(device))
        let stream = try await client.open("bench")
        try await wait(for: stream)
        let taken = (ContinuousClock.now - start) / .seconds(1)
        await client.close()
        return taken
    }

    private static func wait(for stream: SyncStream) async throws {
        for publication in await stream.pending() { try await publication.outcome() }
        guard stream.status.pendingCount == 0 else { throw BenchmarkError("the queue is not empty") }
    }

    /// Removes as many pairs from a file as the device's queue has.
    private static func bareSQLite(_ path: String, like device: String) throws -> Double {
        var sizes = try DeviceLoad.sizes(of: device)
        sizes.pairs = Int64(edits)
        let isMade = reel_device_floor_load(path, sizes, 1_000) > 0
        let taken = isMade ? reel_device_floor_drain(path, 256) : -1
        guard taken > 0 else { throw BenchmarkError("the bare SQLite program failed") }
        return taken
    }
}
