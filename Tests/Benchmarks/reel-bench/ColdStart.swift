import Foundation
import ReelClient
import ReelCore
import ReelLab
import ReelLog
import ReelNet

/// Measures the cold start of a new device with `reel serve`, from the connect to the folded state in the device's
/// file. The size of a snapshot must depend on the state only, and not on the length of the history.
enum ColdStartBenchmark {
    private static let objects = 1_000

    @Sendable static func run() async throws -> [Measured] {
        let short = try await served(updates: 10_000) { node, last in try await snapshotBytes(node, last) }
        let (long, millis) = try await served(updates: 100_000) { node, last in
            let bytes = try await snapshotBytes(node, last)
            var millis: [Double] = []
            for _ in 0..<25 { millis.append(try await coldStart(node, last)) }
            return (bytes, millis)
        }
        return [
            Measured(
                work: "cold start: \(objects) live objects after 100000 updates, p50 of 25",
                value: median(millis),
                unit: "ms",
                goal: .atMost(60)
            ),
            Measured(
                work: "cold start: size of the snapshot",
                value: Double(long),
                unit: "B",
                peer: ("after 10000 updates", Double(short)),
                goal: .within(0.05)
            ),
        ]
    }

    /// Runs `reel serve` on a log with `updates` updates. `body` gets the node and the last seq.
    private static func served<R>(updates: Int, _ body: (LocalNode, Seq) async throws -> R) async throws -> R {
        try await withFolder { folder in
            let log = try SQLiteLog(path: folder + "/log.sqlite", partitions: 1)
            try log.fill(BenchEvents.inserts(objects))
            try log.fill(BenchEvents.updates(updates, of: objects))
            log.close()
            return try await withReel(["serve", "--data", folder], in: folder) { node in
                try await body(node, Seq(objects + updates) - 1)
            }
        }
    }

    /// Waits until the node has folded all records, and returns the size of its snapshot in bytes.
    private static func snapshotBytes(_ node: LocalNode, _ last: Seq) async throws -> Int {
        let loop = try EventLoop()
        defer { loop.stop() }
        let client = try loop.sync { LoopBound(HTTPClient(on: loop), on: loop) }
        guard let (host, port) = SocketAddress.split(String(node.url.dropFirst(7))) else { return 0 }
        let question = HTTPClientRequest("GET", host: host, port: port, target: "/v1/streams/bench/snapshot")
        for _ in 0..<1_000 {
            let answer = try await client.fetch(question)
            if answer.status == 200, answer.headers["etag"]?.hasSuffix(":\(last)\"") == true {
                return answer.body.count
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw BenchmarkError("the node does not reach seq \(last)")
    }

    private static func coldStart(_ node: LocalNode, _ last: Seq) async throws -> Double {
        try await withFolder { folder in
            let start = ContinuousClock.now
            let client = try SyncClient(
                nodes: [node.url],
                store: .file(folder + "/device.sqlite"),
                transport: try NetTransport()
            )
            let stream = try await client.open("bench")
            try await stream.waitUntil(seq: last)
            let taken = ContinuousClock.now - start
            let held = try stream.objects("task").count
            await client.close()
            guard held == objects else { throw BenchmarkError("the device holds \(held) objects") }
            return taken / .milliseconds(1)
        }
    }
}
