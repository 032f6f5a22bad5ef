import Foundation
import ReelCore
import ReelLog
import Synchronization
import Testing

/// Every kind of log that passes `EventLogConformance`.
enum LogKind: CaseIterable, Sendable, CustomTestStringConvertible {
    case memory
    case sqlite
    /// A checkpoint after almost every commit.
    case sqliteThatCheckpoints

    var testDescription: String { "\(self)" }

    /// Runs `body` with an empty log that lives as long.
    func withLog<R>(partitions: Int = 4, _ body: (any EventLog) async throws -> R) async throws -> R {
        switch self {
        case .memory:
            let log = try MemoryLog(partitions: partitions)
            defer { log.close() }
            return try await body(log)
        case .sqlite, .sqliteThatCheckpoints:
            let frames = self == .sqlite ? SQLiteLog.checkpointFramesDefault : 2
            return try await withFolder { folder in
                let log = try SQLiteLog(path: folder + "/log.db", partitions: partitions, checkpointFrames: frames)
                defer { log.close() }
                return try await body(log)
            }
        }
    }
}

/// A folder of its own for `body`, removed afterwards.
func withFolder<R>(_ body: (String) async throws -> R) async throws -> R {
    let path = FileManager.default.temporaryDirectory.path + "/reel-log-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(atPath: path) }
    return try await body(path)
}

/// Waits until `condition` holds; fails the test after a generous time.
func eventually(
    _ what: String,
    seconds: Double = 30,
    at location: SourceLocation = #_sourceLocation,
    _ condition: () throws -> Bool
) async throws {
    let end = ContinuousClock.now + .seconds(seconds)
    while try !condition() {
        guard ContinuousClock.now < end else {
            Issue.record("never happened: \(what)", sourceLocation: location)
            throw CancellationError()
        }
        try await Task.sleep(for: .milliseconds(2))
    }
}

/// How much more work than usual the tests do: `REEL_EFFORT`.
let effort = max(1, ProcessInfo.processInfo.environment["REEL_EFFORT"].flatMap { Int($0) } ?? 1)

/// Numbers that a printed seed gives again: `REEL_SEED`.
struct SeededNumbers: RandomNumberGenerator {
    private var state: UInt64

    init(_ test: String) {
        let seed =
            ProcessInfo.processInfo.environment["REEL_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0...UInt64.max)
        print("\(test): REEL_SEED=\(seed)")
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}

/// A record as a test compares it.
struct Seen: Equatable, Sendable {
    var seq: Seq
    var key: String
    var value: [UInt8]
    var witness: Witness?

    var text: String { String(decoding: value, as: UTF8.self) }
}

extension RecordBatch {
    var seen: [Seen] {
        entries.map { entry in
            withRecord(entry) { key, value in
                Seen(
                    seq: entry.seq,
                    key: String(decoding: key, as: UTF8.self),
                    value: Array(value),
                    witness: entry.witness
                )
            }
        }
    }
}

extension LogAppend {
    init(_ key: String, _ value: String, witness: Witness? = nil) {
        self.init(key: Array(key.utf8), value: Array(value.utf8), witness: witness)
    }
}

extension EventLog {
    /// Appends and waits for the answer.
    @discardableResult
    func append(_ records: [LogAppend], to partition: Int = 0) async throws -> [Seq] {
        try await withCheckedThrowingContinuation { continuation in
            append(records, to: partition) { continuation.resume(with: $0) }
        }
    }

    /// Appends one record for each text, one call for all.
    @discardableResult
    func append(_ texts: String..., to partition: Int = 0) async throws -> [Seq] {
        try await append(texts.map { LogAppend("s", $0) }, to: partition)
    }
}

/// A sink that keeps what arrives and can be asked.
final class CollectingSink: LogSink {
    private struct State {
        var records: [Seen] = []
        var batches: [Range<Seq>] = []
        var error: LogError?
    }
    private let state = Mutex(State())
    private let onBatch: (@Sendable (RecordBatch) -> Void)?

    init(onBatch: (@Sendable (RecordBatch) -> Void)? = nil) {
        self.onBatch = onBatch
    }

    var records: [Seen] { state.withLock { $0.records } }
    var texts: [String] { records.map(\.text) }
    var count: Int { state.withLock { $0.records.count } }
    var batches: [Range<Seq>] { state.withLock { $0.batches } }
    var error: LogError? { state.withLock { $0.error } }

    func received(_ batch: RecordBatch) {
        state.withLock { state in
            state.records += batch.seen
            state.batches.append(batch.seqs)
        }
        onBatch?(batch)
    }

    func failed(_ error: LogError) {
        state.withLock { $0.error = error }
    }
}
