import EventLogConformance
import Foundation
import ReelCore
import ReelLog
import Testing

/// The kinds of log that need only one machine.
enum LocalLog: CaseIterable, LogKind {
    case memory
    case sqlite
    /// A log in a file with a checkpoint after almost every commit.
    case sqliteThatCheckpoints

    var testDescription: String { "\(self)" }

    /// Creates an empty log, runs `body` with it, and then closes and removes it.
    func withLog(partitions: Int, _ body: (any EventLog) async throws -> Void) async throws {
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

/// The log in memory, which can be trimmed completely. A log in a file cannot, because its next seq follows from its
/// last row.
private struct TrimmedMemory: TrimmableLog {
    var testDescription: String { LocalLog.memory.testDescription }

    func withLog(partitions: Int, _ body: (any EventLog) async throws -> Void) async throws {
        try await LocalLog.memory.withLog(partitions: partitions, body)
    }

    func trim(_ log: any EventLog, before seq: Seq) throws {
        try #require(log as? MemoryLog).trim(0, before: seq)
    }
}

@Suite(.timeLimit(.minutes(5)))
struct LocalLogConformance {
    @Test("every log does", arguments: LogRequirement.all, LocalLog.allCases)
    func conforms(_ requirement: LogRequirement, _ kind: LocalLog) async throws {
        try await requirement.hold(for: kind)
    }

    @Test("every log that can be trimmed does", arguments: TrimRequirement.all)
    func trims(_ requirement: TrimRequirement) async throws {
        try await requirement.hold(for: TrimmedMemory())
    }
}

/// Runs `body` with a new folder, and removes the folder afterwards.
func withFolder<R>(_ body: (String) async throws -> R) async throws -> R {
    let path = FileManager.default.temporaryDirectory.path + "/reel-log-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(atPath: path) }
    return try await body(path)
}
