import CLogFloor
import Foundation
import ReelCore
import ReelLog
import Synchronization

private let recordBytes = 200
/// The bytes that a row adds to each record: the key `s`, two sizes, and a witness.
private let framingBytes = 1 + 3 + 16
private let pageBytes: Int32 = 8192
private let walFrames = Int32(SQLiteLog.checkpointFramesDefault)

private func record() -> LogAppend {
    LogAppend(
        key: [0x73],
        value: [UInt8](repeating: 0x78, count: recordBytes),
        witness: Witness(seq: 1, hash: 1)
    )
}

/// Measures durable appends with `depth` in flight. The floor is a bare C program with the same file layout and groups;
/// the peer is Redis.
enum LogAppendBenchmark {
    static func run(_ depth: Int) throws -> [Measured] {
        let groups = depth >= 256 ? 300 : 1000
        let count = Double(depth * groups)
        var ours: [Double] = []
        var floor: [Double] = []
        var redis: [Double] = []
        for _ in 0..<5 {
            floor.append(count / (try bareC(depth, groups)))
            ours.append(count / (try sqliteLog(depth, groups)))
            redis.append(count / (try Redis.appends(depth: depth, count: depth * groups, bytes: recordBytes)))
        }
        let work = "durable appends, \(recordBytes) B, \(depth) in flight"
        let value = median(ours)
        return [
            Measured(work: work, value: value, unit: "/s", peer: ("bare C", median(floor)), goal: .atLeast(0.8)),
            Measured(
                work: work,
                value: value,
                unit: "/s",
                peer: ("redis XADD", median(redis)),
                goal: .atLeast(depth >= 1024 ? 3 : 1.5)
            ),
        ]
    }

    private static func bareC(_ depth: Int, _ groups: Int) throws -> Double {
        try withFolder { folder in
            let taken = reel_floor_groups(
                folder + "/log.db",
                pageBytes,
                walFrames,
                Int32(depth),
                Int32(groups),
                Int32(recordBytes + framingBytes)
            )
            guard taken > 0 else { throw BenchmarkError("the bare C program failed") }
            return taken
        }
    }

    private static func sqliteLog(_ depth: Int, _ groups: Int) throws -> Double {
        try withFolder { folder in
            let log = try SQLiteLog(path: folder + "/log.db", partitions: 1)
            defer { log.close() }
            let load = ClosedLoop(log, count: depth * groups)
            return try seconds { try load.run(inFlight: depth) }
        }
    }
}

/// A client that keeps a number of appends in flight: each answer starts the next append.
private final class ClosedLoop: Sendable {
    private struct State {
        var toSend: Int
        var toAnswer: Int
        var error: LogError?
    }
    private let log: any EventLog
    private let state: Mutex<State>
    private let finished = DispatchSemaphore(value: 0)
    private let records = [record()]

    init(_ log: any EventLog, count: Int) {
        self.log = log
        state = Mutex(State(toSend: count, toAnswer: count))
    }

    func run(inFlight depth: Int) throws {
        for _ in 0..<depth { send() }
        finished.wait()
        if let error = state.withLock({ $0.error }) { throw error }
    }

    private func send() {
        let sends = state.withLock { state in
            state.toSend -= 1
            return state.toSend >= 0
        }
        guard sends else { return }
        log.append(records, to: 0) { result in
            let isLast = self.state.withLock { state in
                if case .failure(let error) = result { state.error = error }
                state.toAnswer -= 1
                return state.toAnswer == 0
            }
            if isLast { self.finished.signal() } else { self.send() }
        }
    }
}

/// Measures one append at a time, in comparison with a bare append of 4 KiB with fdatasync.
enum LogLatencyBenchmark {
    static func run() throws -> [Measured] {
        let count = 1000
        var ours: [Double] = []
        var floor: [Double] = []
        for _ in 0..<5 {
            try withFolder { folder in
                var micros = [Double](repeating: 0, count: count)
                guard reel_floor_blocks(folder + "/blocks", Int32(count), &micros) == 0 else {
                    throw BenchmarkError("the bare append failed")
                }
                floor.append(median(micros))
                let log = try SQLiteLog(path: folder + "/log.db", partitions: 1)
                defer { log.close() }
                ours.append(
                    median(
                        try (0..<count).map { _ in
                            try seconds { try ClosedLoop(log, count: 1).run(inFlight: 1) } * 1e6
                        }
                    )
                )
            }
        }
        return [
            Measured(
                work: "one durable append at a time, p50",
                value: median(ours),
                unit: "µs",
                peer: ("4 KiB append + fdatasync", median(floor)),
                goal: .atMost(1.5)
            )
        ]
    }
}

/// Measures the read of a range from the file, including an access to the key and value of each record.
enum LogReadBenchmark {
    static func run() throws -> [Measured] {
        let count = 500_000
        return try withFolder { folder in
            let log = try SQLiteLog(path: folder + "/log.db", partitions: 1)
            defer { log.close() }
            try ClosedLoop(log, count: count).run(inFlight: 256)
            let rates = try (0..<5).map { _ in
                var bytes = 0
                let taken = try seconds {
                    try log.scan(0, from: 0) { batch in
                        for entry in batch.entries {
                            batch.withRecord(entry) { key, value in bytes += key.count + Int(value[0]) }
                        }
                    }
                }
                guard bytes == count * (1 + 0x78) else { throw BenchmarkError("found \(bytes) bytes") }
                return Double(count) / taken
            }
            return [
                Measured(
                    work: "range read, \(recordBytes) B",
                    value: median(rates),
                    unit: "events/s",
                    goal: .atLeast(1_500_000)
                )
            ]
        }
    }
}
