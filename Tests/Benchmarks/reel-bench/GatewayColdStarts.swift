import CFanOutFloor
import Foundation
import ReelLab
import ReelLog
import ReelNet

/// Measures 1,000 devices that request the state at the same time, while other clients get live events. Twenty devices
/// request each stream. Each round uses other streams, so that no answer is cached.
enum GatewayColdStartsBenchmark {
    private static let (objects, devices, streams, rounds) = (1_000, 1_000, 50, 5)

    @Sendable static func run() async throws -> [Measured] {
        raiseDescriptorLimit()
        return try await withFolder { folder in
            let log = try SQLiteLog(path: folder + "/log.sqlite", partitions: 1)
            for number in 0..<rounds * streams {
                try log.fill(BenchEvents.inserts(objects, from: number * objects), of: name(of: number))
            }
            log.close()
            return try await withReel(["serve", "--data", folder], in: folder) { node in
                guard let port = node.port else { throw BenchmarkError("found \(node.url), expected a port") }
                let pid = node.process.pid
                let live = Pace(sockets: 100, streams: 1, subscriptions: 1, perSecond: 100)
                let last = rounds * streams * objects - 1
                try await node.questions().wait(for: "all of the log is folded") {
                    try await $0.metric(#"reel_snapshot_seq{partition="0"}"#) >= last
                }
                var (quiet, busy, seconds): ([Double], [Double], [Double]) = ([], [], [])
                try await Usage.rests(pid)
                let before = try Usage.residentBytes(of: pid)
                try Usage.forgetPeak(of: pid)
                for round in 0..<rounds {
                    quiet.append(try live.run(floor_reel, port, pid: pid).p99Micros)
                    async let starts = coldStarts(in: round, port)
                    busy.append(try await Task.detached { try live.run(floor_reel, port, pid: pid).p99Micros }.value)
                    seconds.append(try await starts)
                    try await Usage.rests(pid)
                }
                return [
                    Measured(
                        work: "\(devices) cold starts at once, of \(streams) streams of \(objects) objects each: "
                            + "additional memory",
                        value: Double(try Usage.peakBytes(of: pid) - before) / Double(1 << 20),
                        unit: "MiB",
                        goal: .atMost(64)
                    ),
                    Measured(
                        work: "\(devices) cold starts at once: time until all devices have the state",
                        value: median(seconds),
                        unit: "s"
                    ),
                    Measured(
                        work: "100 events/s → 100 during \(devices) cold starts: p99",
                        value: median(busy),
                        unit: "µs",
                        peer: ("undisturbed", median(quiet)),
                        goal: .atMost(2)
                    ),
                ]
            }
        }
    }

    private static func name(of number: Int) -> String { "cold\(number)" }

    /// Downloads a snapshot of one of the round's streams for each device, on a connection of its own. Returns the
    /// seconds until all downloads are complete.
    private static func coldStarts(in round: Int, _ port: Int32) async throws -> Double {
        let begin = ContinuousClock.now
        let loop = try EventLoop()
        defer { loop.stop() }
        try await withThrowingTaskGroup { group in
            for device in 0..<devices {
                let question = HTTPClientRequest(
                    "GET",
                    host: "127.0.0.1",
                    port: UInt16(clamping: port),
                    target: "/v1/streams/\(name(of: round * streams + device % streams))/snapshot"
                )
                group.addTask {
                    let client = try await loop.run { LoopBound(HTTPClient(on: loop), on: loop) }
                    // Devices that are refused wait for the time in the answer, plus up to a second so that they do not
                    // return together.
                    for _ in 0..<60 {
                        let (answer, bytes) = try await ask(question, by: client)
                        // A complete snapshot has more than 200 bytes for each object.
                        if answer.status == 200, bytes > 200 * objects { return }
                        guard answer.status == 503, let seconds = answer.headers["retry-after"].flatMap({ Int($0) })
                        else { throw BenchmarkError("found status \(answer.status) with \(bytes) bytes") }
                        try await Task.sleep(for: .milliseconds(1_000 * seconds + .random(in: 0..<1_000)))
                    }
                    throw BenchmarkError("a cold start was refused for a minute")
                }
            }
            try await group.waitForAll()
        }
        return (ContinuousClock.now - begin) / .seconds(1)
    }

    /// Sends a request, and counts the bytes of the answer without storing them, to save processor time for the
    /// measured node.
    private static func ask(
        _ question: HTTPClientRequest,
        by client: LoopBound<HTTPClient>
    ) async throws -> (HTTPResponseHead, bytes: Int) {
        try await withCheckedThrowingContinuation { continuation in
            let isTaken = client.loop.execute {
                var (found, bytes): (HTTPResponseHead?, Int) = (nil, 0)
                client.value.send(question) { event in
                    switch event {
                    case .head(let head): found = head
                    case .data(let piece): bytes += piece.count
                    case .end:
                        if let found { continuation.resume(returning: (found, bytes: bytes)) }
                    case .failed(let error): continuation.resume(throwing: error)
                    }
                }
            }
            if !isTaken { continuation.resume(throwing: BenchmarkError("the event loop has stopped")) }
        }
    }
}
