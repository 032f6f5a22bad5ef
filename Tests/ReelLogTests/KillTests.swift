import EventLogConformance
import Foundation
import ReelCore
import ReelLog
import TestSupport
import Testing

/// Tests that a log is complete after processes were killed while they wrote. Each acknowledged record is at its seq,
/// and no seq is missing.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct KillTests {
    /// Returns all records of the log with their partitions and seqs. The test fails if a seq is missing.
    private func contents(_ path: String) throws -> Set<WriterProcess.Acked> {
        let log = try SQLiteLog(path: path)
        defer { log.close() }
        var found = Set<WriterProcess.Acked>()
        for partition in 0..<log.partitions {
            var next: Seq = 0
            try log.scan(partition, from: 0) { batch in
                for record in batch.seen {
                    #expect(record.seq == next)
                    next = record.seq + 1
                    found.insert(.init(partition: partition, seq: record.seq, record: record.text))
                }
            }
            #expect(try log.bounds(partition).last == next - 1)
        }
        return found
    }

    @Test("a writer killed at any moment loses nothing that it had acked")
    func killedWriter() async throws {
        var numbers = SeededNumbers(TestSeed.value)
        try await withFolder { folder in
            try SQLiteLog(path: folder + "/log.db", partitions: 2, checkpointFrames: 4).close()
            var acked = Set<WriterProcess.Acked>()
            for round in 0..<min(200, 5 * effort) {
                let process = try WriterProcess(folder, name: "r\(round)", count: 1_000_000)
                let enough = Int.random(in: 1...300, using: &numbers)
                try await eventually("\(enough) answers") { try process.lines.count > enough || !process.isRunning }
                process.kill()
                try await eventually("its end") { !process.isRunning }
                #expect(try process.lines.allSatisfy { !$0.hasPrefix("failed") })
                acked.formUnion(try process.acked)
                let found = try contents(folder + "/log.db")
                #expect(acked.subtracting(found).isEmpty)
            }
        }
    }

    @Test("four processes on one log, checkpoints all the time, two of them killed and followed: nothing is lost")
    func fourProcesses() async throws {
        var numbers = SeededNumbers(TestSeed.value)
        try await withFolder { folder in
            try SQLiteLog(path: folder + "/log.db", partitions: 3, checkpointFrames: 2).close()
            let count = 200 * effort
            let steady = try (0..<2).map {
                try WriterProcess(folder, name: "s\($0)", count: count, checkpointFrames: 2)
            }
            var acked = Set<WriterProcess.Acked>()
            for round in 0..<2 * effort {
                let doomed = try (0..<2).map {
                    try WriterProcess(folder, name: "d\(round).\($0)", count: 1_000_000, checkpointFrames: 2)
                }
                for process in doomed {
                    let enough = Int.random(in: 1...100, using: &numbers)
                    try await eventually("\(enough) answers") { try process.lines.count > enough }
                    process.kill()
                    try await eventually("its end") { !process.isRunning }
                    acked.formUnion(try process.acked)
                }
            }
            for process in steady {
                try await eventually("the steady ones are done", seconds: 120) {
                    try process.lines.last == "done" || !process.isRunning
                }
                #expect(try process.lines.last == "done")
                #expect(try process.acked.count == count)
                acked.formUnion(try process.acked)
            }
            let found = try contents(folder + "/log.db")
            #expect(acked.subtracting(found).isEmpty)
            // The records of each writer that was not killed are in its own order.
            for (_, records) in Dictionary(grouping: found, by: { "\($0.partition) \($0.record.prefix { $0 != "." })" })
            where records[0].record.hasPrefix("s") {
                let places = records.sorted { $0.seq < $1.seq }.map { Int($0.record.split(separator: ".")[1]) ?? -1 }
                #expect(places == places.sorted())
            }
        }
    }

    @Test("a tail in this process follows writers that are killed") func tailFollows() async throws {
        try await withFolder { folder in
            let log = try SQLiteLog(path: folder + "/log.db", partitions: 1, checkpointFrames: 2)
            defer { log.close() }
            let sink = CollectingSink()
            _ = log.tail(0, from: 0, to: sink)
            for round in 0..<2 {
                let process = try WriterProcess(folder, name: "t\(round)", count: 1_000_000)
                try await eventually("answers") { try process.acked.count > 50 }
                process.kill()
                try await eventually("its end") { !process.isRunning }
                let acked = try process.acked
                try await eventually("the tail has them") { sink.count > Int(acked.last?.seq ?? 0) }
                let records = sink.records
                #expect(acked.allSatisfy { records[Int($0.seq)].text == $0.record })
            }
        }
    }
}
