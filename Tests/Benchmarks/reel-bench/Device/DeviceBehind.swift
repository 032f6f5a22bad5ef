import Foundation
import ReelClient
import ReelCore
import ReelLab

/// Measures how far a device falls behind if its link is slower than the events of its stream, and how long its own
/// events take meanwhile.
///
/// The device judges its link by time, so the run is not shortened. It takes five minutes.
enum DeviceBehind {
    private static let (linkBytesPerSecond, eventsPerSecond, seconds) = (16_000, 200, 300)
    private static let objects = 100
    /// The seconds at the end of the run in which the largest distance counts.
    private static let lastSeconds = 60

    @Sendable static func run() async throws -> [Measured] {
        try await withFolder { folder in
            try await withReel(["serve", "--data", folder], in: folder) { node in
                guard let port = node.port else { throw BenchmarkError("found \(node.url), expected a port") }
                let author = try SyncClient(nodes: [node.url], store: .memory)
                let source = try await author.open("bench")
                for number in 0..<objects { try await source.publish(DeviceEvents.insert(number)) }
                let link = try SlowLink(to: UInt16(clamping: port), bytesPerSecond: linkBytesPerSecond)
                let client = try SyncClient(nodes: [link.url], store: .file(folder + "/device.sqlite"))
                let stream = try await client.open("bench")
                try await stream.waitUntil(seq: Seq(objects) - 1)
                let found = try await follow(stream, of: UInt16(clamping: port), source)
                link.end()
                await client.close()
                await author.close()
                let work = "\(linkBytesPerSecond / 1_000) kB/s link, \(eventsPerSecond) events/s on \(objects) objects"
                return [
                    Measured(
                        work: "\(work): behind at most, from \(seconds - lastSeconds) s to \(seconds) s",
                        value: found.behind,
                        unit: "s",
                        goal: .atMost(10)
                    ),
                    Measured(
                        work: "\(work): an own event until its outcome, at most",
                        value: found.outcome,
                        unit: "s",
                        goal: .atMost(10)
                    ),
                ]
            }
        }
    }

    /// Publishes the events of another device, and one event of the slow device every ten seconds. Returns the largest
    /// distance of the slow device, and the longest time until an outcome, in seconds.
    private static func follow(
        _ stream: SyncStream,
        of port: UInt16,
        _ source: SyncStream
    ) async throws -> (behind: Double, outcome: Double) {
        let begin = ContinuousClock.now
        return try await withThrowingTaskGroup(of: (behind: Double, outcome: Double).self) { group in
            group.addTask {
                try await write(to: source)
                return (0, 0)
            }
            group.addTask {
                var longest = 0.0
                for second in stride(from: 5, to: seconds - 10, by: 10) {
                    try await Task.sleep(until: begin + .seconds(second))
                    let sent = ContinuousClock.now
                    _ = try await stream.publish(DeviceEvents.update(second % objects, "own \(second)")).outcome()
                    longest = max(longest, (ContinuousClock.now - sent) / .seconds(1))
                }
                return (0, longest)
            }
            group.addTask {
                var largest = 0.0
                for second in seconds - lastSeconds...seconds - 1 {
                    try await Task.sleep(until: begin + .seconds(second))
                    let head = try await Questions(port: port).head(of: "bench")
                    largest = max(largest, Double(head - Int(stream.status.seq)) / Double(eventsPerSecond))
                }
                return (largest, 0)
            }
            var result = (behind: 0.0, outcome: 0.0)
            for try await found in group {
                result = (max(result.behind, found.behind), max(result.outcome, found.outcome))
            }
            return result
        }
    }

    private static func write(to stream: SyncStream) async throws {
        let begin = ContinuousClock.now
        let batch = 20
        for start in stride(from: 0, to: eventsPerSecond * seconds, by: batch) {
            try await Task.sleep(until: begin + .microseconds(1_000_000 * start / eventsPerSecond))
            let value = "event \(start)"
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in start..<start + batch {
                    group.addTask { try await stream.publish(DeviceEvents.update(number % objects, value)) }
                }
                try await group.waitForAll()
            }
        }
    }
}
