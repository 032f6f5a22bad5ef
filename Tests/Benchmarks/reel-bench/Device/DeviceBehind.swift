import Foundation
import ReelClient
import ReelCore
import ReelLab

/// Measures how far a device falls behind if its link is slower than the events of its stream.
///
/// Time is scaled: link and events are ten times as fast, and the run ten times as short. All buffers on the way have
/// bytes and not seconds as their limits, so the device is as far behind in scaled seconds as in real ones.
enum DeviceBehind {
    private static let (linkBytesPerSecond, eventsPerSecond, seconds) = (16_000, 200, 300)
    private static let (objects, scale) = (100, 10)

    @Sendable static func run() async throws -> [Measured] {
        try await withFolder { folder in
            try await withReel(["serve", "--data", folder], in: folder) { node in
                guard let port = node.port else { throw BenchmarkError("found \(node.url), expected a port") }
                let author = try SyncClient(nodes: [node.url], store: .memory)
                let source = try await author.open("bench")
                for number in 0..<objects { try await source.publish(DeviceEvents.insert(number)) }
                let link = try SlowLink(to: UInt16(clamping: port), bytesPerSecond: linkBytesPerSecond * scale)
                let client = try SyncClient(nodes: [link.url], store: .file(folder + "/device.sqlite"))
                let stream = try await client.open("bench")
                try await stream.waitUntil(seq: Seq(objects) - 1)
                let taken = try await write(to: source)
                let head = try await node.questions().head(of: "bench")
                let missing = Double(head - Int(stream.status.seq))
                link.end()
                await client.close()
                await author.close()
                let perSecond = Double(head - objects + 1) / taken
                return [
                    Measured(
                        work: "\(linkBytesPerSecond / 1_000) kB/s link, \(eventsPerSecond) events/s on \(objects) "
                            + "objects: behind after \(seconds) s, in time scaled by \(scale)",
                        value: missing / perSecond * Double(scale),
                        unit: "s",
                        goal: .atMost(10)
                    )
                ]
            }
        }
    }

    /// Publishes the events, and returns the seconds that it took.
    private static func write(to stream: SyncStream) async throws -> Double {
        let (perSecond, begin) = (eventsPerSecond * scale, ContinuousClock.now)
        let batch = 20
        for start in stride(from: 0, to: eventsPerSecond * seconds, by: batch) {
            try await Task.sleep(until: begin + .microseconds(1_000_000 * start / perSecond))
            let value = "event \(start)"
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in start..<start + batch {
                    group.addTask { try await stream.publish(DeviceEvents.update(number % objects, value)) }
                }
                try await group.waitForAll()
            }
        }
        return (ContinuousClock.now - begin) / .seconds(1)
    }
}
