import CFanOutFloor
import Foundation
import ReelLab
import ReelLog
import ReelNet

/// A thousand devices that know nothing ask for the state at once, while others are served live.
enum GatewayColdStartsBenchmark {
    private static let (objects, devices) = (1_000, 1_000)

    @Sendable static func run() async throws -> [Measured] {
        raiseDescriptorLimit()
        return try await withFolder { folder in
            let log = try SQLiteLog(path: folder + "/log.sqlite", partitions: 1)
            try log.fill(BenchEvents.inserts(objects))
            log.close()
            return try await withReel(["serve", "--data", folder], in: folder) { node in
                guard let port = node.port else { throw BenchmarkError("found \(node.url), expected a port") }
                let pid = node.process.pid
                let live = Pace(sockets: 100, streams: 1, subscriptions: 1, perSecond: 100)
                // The first ones make the answer, which is kept, once all is folded.
                try await coldStarts(100, port)
                var (quiet, busy): ([Double], [Double]) = ([], [])
                let before = try Usage.residentBytes(of: pid)
                try Usage.forgetPeak(of: pid)
                for _ in 0..<3 {
                    quiet.append(try live.run(floor_reel, port, pid: pid).p99Micros)
                    async let starts: Void = coldStarts(devices, port)
                    busy.append(try await Task.detached { try live.run(floor_reel, port, pid: pid).p99Micros }.value)
                    try await starts
                }
                return [
                    Measured(
                        work: "\(devices) cold starts at once, \(objects) objects each: memory beyond before",
                        value: Double(try Usage.peakBytes(of: pid) - before) / Double(1 << 20),
                        unit: "MiB",
                        goal: .atMost(64)
                    ),
                    Measured(
                        work: "live events meanwhile, 100/s → 100: p99",
                        value: median(busy),
                        unit: "µs",
                        peer: ("undisturbed", median(quiet)),
                        goal: .atMost(2)
                    ),
                ]
            }
        }
    }

    /// So many devices take the snapshot, each on a connection of its own.
    private static func coldStarts(_ count: Int, _ port: Int32) async throws {
        let loop = try EventLoop()
        defer { loop.stop() }
        let question = HTTPClientRequest(
            "GET",
            host: "127.0.0.1",
            port: UInt16(clamping: port),
            target: "/v1/streams/bench/snapshot"
        )
        try await withThrowingTaskGroup { group in
            for _ in 0..<count {
                group.addTask {
                    let client = try await loop.run { LoopBound(HTTPClient(on: loop), on: loop) }
                    // Too many at once are asked to come again in so many seconds, and do, not all at the same moment.
                    for _ in 0..<60 {
                        let answer = try await head(of: question, by: client)
                        if answer.status == 200 { return }
                        guard answer.status == 503, let seconds = answer.headers["retry-after"].flatMap({ Int($0) })
                        else { throw BenchmarkError("found status \(answer.status)") }
                        try await Task.sleep(for: .milliseconds(1_000 * seconds + .random(in: 0..<1_000)))
                    }
                    throw BenchmarkError("a cold start was turned away for a minute")
                }
            }
            try await group.waitForAll()
        }
    }

    /// Asks, and reads the whole answer without keeping it: the cores are for what is measured.
    private static func head(
        of question: HTTPClientRequest,
        by client: LoopBound<HTTPClient>
    ) async throws -> HTTPResponseHead {
        try await withCheckedThrowingContinuation { continuation in
            let isTaken = client.loop.execute {
                var found: HTTPResponseHead?
                client.value.send(question) { event in
                    switch event {
                    case .head(let head): found = head
                    case .data: break
                    case .end:
                        if let found { continuation.resume(returning: found) }
                    case .failed(let error): continuation.resume(throwing: error)
                    }
                }
            }
            if !isTaken { continuation.resume(throwing: BenchmarkError("the event loop has stopped")) }
        }
    }
}
