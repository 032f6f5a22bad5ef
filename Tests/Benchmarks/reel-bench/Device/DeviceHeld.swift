import Foundation
import ReelBase
import ReelClient
import ReelCore
import ReelNet
import ScriptedNodes

/// Measures a device whose writes the node refuses, while other devices write to the same stream.
enum DeviceHeld {
    private static let (objects, seconds, perSecond) = (20_000, 5, 50)

    @Sendable static func run() async throws -> [Measured] {
        let held = try withFolder { folder in try DeviceWork.held.figures(folder).figure("percent") }
        let free = try withFolder { folder in try DeviceWork.unheld.figures(folder).figure("percent") }
        let work = "\(objects) writes that may not be sent, beside \(perSecond) foreign events/s: CPU"
        return [
            Measured(work: work, value: held, unit: "% of a core", goal: .atMost(2)),
            Measured(work: work, value: held, unit: "% of a core", peer: ("without writes", free)),
        ]
    }

    /// Queues a write of each object, and measures the processor time of the client's thread while events arrive. The
    /// scripted node runs on the same thread. `isHeld`: false for the same work without the writes.
    static func measure(in folder: String, isHeld: Bool) async throws -> [String: Double] {
        let (snapshot, device) = (folder + "/stream.snapshot", folder + "/device.sqlite")
        try DeviceSnapshot.write(objects, to: snapshot)
        let refusal = ReelError(.forbidden, "the token does not allow it")
        let node = try ScriptedNode(snapshot: snapshot, head: Seq(objects) - 1, publishing: .refused(refusal))
        let client = try SyncClient(nodes: ["scripted"], store: .file(device), transport: node)
        let stream = try await client.open(DeviceSnapshot.stream.description)
        try await stream.waitUntil(seq: Seq(objects) - 1)
        if isHeld {
            try await DeviceEvents.publishUpdates(of: 0..<objects, "held", to: stream)
            while stream.status.problems.isEmpty { try await Task.sleep(for: .milliseconds(20)) }
        }
        guard stream.status.pendingCount == (isHeld ? objects : 0) else {
            throw BenchmarkError("a write has left the queue")
        }
        var generator = SeededGenerator(seed: 3)
        let (begin, cpu) = (ContinuousClock.now, try await node.loop.run { Usage.ownThreadSeconds() })
        let count = seconds * perSecond
        for op in 0..<count {
            try await Task.sleep(until: begin + .milliseconds(1_000 * op / perSecond))
            let number = Int(generator.next() % UInt64(objects))
            node.append(to: DeviceSnapshot.stream) { DeviceSnapshot.update(of: number, seq: $0, op: op).json }
        }
        try await stream.waitUntil(seq: Seq(objects + count) - 1)
        let taken = (ContinuousClock.now - begin) / .seconds(1)
        let percent = (try await node.loop.run { Usage.ownThreadSeconds() } - cpu) / taken * 100
        await client.close()
        return ["percent": percent]
    }
}
