import Foundation
import ReelClient
import ReelCore
import ReelSQLite
import TestSupport
import Testing

@testable import storage_writer

/// A process that writes to a storage. At each of its writes, a test kills it or makes the disk fail.
@Suite(.timeLimit(.minutes(10))) struct KilledWriterTests {
    @Test(
        "after a kill at any write, the file holds the first commits, and all that had returned",
        arguments: ["kill", "tear"]
    )
    func kills(fault: String) throws {
        let folder = try Folder()
        let path = folder.freshPath
        var random = SeededNumbers(TestSeed.given(or: 7))
        var (number, kills) = (1, 0)
        for call in Self.calls(&random, effort * 25) {
            let run = try Writer.run(path, from: number, count: 40, fault: fault, at: call)
            if run.isKilled { kills += 1 }
            #expect(run.lines.allSatisfy { $0.error == nil }, "call \(call)")
            let last = try Self.check(path, lastOf: number..<(number + 40), "killed at call \(call)")
            let returned = run.lines.last?.number ?? number - 1
            // A commit that repeats the previous commit leaves no trace.
            #expect(last >= returned || (returned % 6 == 0 && last == returned - 1), "killed at call \(call)")
            number = last + 1
        }
        #expect(kills > 20)
    }

    @Test("a failing write fails its commit with its reason, and loses nothing else", arguments: ["full", "fail"])
    func failingWrites(fault: String) throws {
        let folder = try Folder()
        var random = SeededNumbers(TestSeed.given(or: 7))
        for call in Self.calls(&random, effort * 15) {
            let path = folder.freshPath
            _ = try Writer.run(path, from: 1, count: 3)
            let run = try Writer.run(path, from: 4, count: 40, fault: fault, at: call)
            let moment = "\(fault) at call \(call)"
            let code = fault == "full" ? "store_full" : "store_failed"
            #expect(!run.isKilled, "\(moment)")
            #expect(run.lines.allSatisfy { $0.error == nil || $0.error == code }, "\(moment): \(run.text)")
            guard !run.lines.isEmpty else {
                // SQLite does not report why it cannot make the -shm file.
                #expect([code + "\n", "store_failed\n"].contains(run.text), "\(moment)")
                try Self.check(path, commits: Array(1...3), moment)
                continue
            }
            #expect(run.lines.count == 40, "\(moment)")
            // The disk recovers after some calls, and then the commits succeed again.
            #expect(run.lines.last?.error == nil || call > 2_000, "\(moment)")
            #expect(run.text.hasSuffix("closed\n"), "\(moment)")
            try Self.check(path, commits: Array(1...3) + run.lines.filter { $0.error == nil }.map(\.number), moment)
        }
    }

    @Test("a durable commit waits for the disk, and another commit does not")
    func waitsForTheDisk() throws {
        let folder = try Folder()
        let run = try Writer.run(folder.freshPath, from: 1, count: 8)
        for line in run.lines {
            // Commit 6 repeats commit 5, which was not durable.
            #expect((line.syncs > 0) == (line.number % 3 == 0), "commit \(line.number): \(line.syncs) waits")
        }
    }

    @Test("a storage that another process has open is busy")
    func busy() throws {
        let folder = try Folder()
        let path = folder.freshPath
        let storage = try SQLiteStorage(path: path)
        #expect(try Writer.run(path, from: 1, count: 1).text == "store_busy\n")
        storage.close()
        #expect(try Writer.run(path, from: 1, count: 1).text.hasSuffix("closed\n"))
    }

    /// Returns numbers of calls: the first ones, and later random ones.
    private static func calls(_ random: inout SeededNumbers, _ count: Int) -> [Int] {
        (0..<count).map { $0 < 10 ? $0 : Int.random(in: 10..<2_600, using: &random) }
    }

    /// Checks that the file contains the first commits, up to one of these numbers. Returns the number of the last
    /// commit.
    private static func check(_ path: String, lastOf numbers: Range<Int>, _ moment: String) throws -> Int {
        let storage = try SQLiteStorage(path: path)
        defer { storage.close() }
        #expect(!storage.hasLostCommits, "\(moment)")
        let value = try storage.snapshot().value(for: WrittenCommit.last)
        let last = value.map { $0.reduce(0) { $0 << 8 | Int($1) } } ?? 0
        #expect(last == 0 || (numbers.lowerBound - 1..<numbers.upperBound).contains(last), "\(moment): \(last)")
        try expect(storage, [Int](0..<last).map { $0 + 1 }, moment)
        return last
    }

    private static func check(_ path: String, commits: [Int], _ moment: String) throws {
        let storage = try SQLiteStorage(path: path)
        try expect(storage, commits, moment)
        storage.close()
        #expect(try Connection(path: path, mode: .readOnly).text("PRAGMA integrity_check") == "ok", "\(moment)")
    }

    private static func expect(_ storage: SQLiteStorage, _ commits: [Int], _ moment: String) throws {
        let model = MemoryStorage()
        for number in commits { try model.commit(WrittenCommit.changes(number), durably: false) }
        let (found, expected) = (try content(storage), try content(model))
        #expect(found == expected, "\(moment): \(found.count) pairs, expected \(expected.count)")
    }

    private static func content(_ storage: any DeviceStorage) throws -> [[UInt8]: [UInt8]] {
        var content: [[UInt8]: [UInt8]] = [:]
        try storage.snapshot().forEach(from: [], to: [0xFF]) { key, value in
            content[Array(key)] = Array(value)
            return true
        }
        return content
    }
}

/// A run of the process `storage-writer`.
struct Writer {
    /// A line about one commit.
    struct Line {
        var number: Int
        var syncs: Int
        var error: String?
    }

    /// All text that the process has printed.
    var text: String
    var isKilled: Bool

    /// The lines about commits.
    var lines: [Line] {
        text.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            guard words.count >= 2, let number = Int(words[0]), let syncs = Int(words[1]) else { return nil }
            return Line(number: number, syncs: syncs, error: words.count > 2 ? String(words[2]) : nil)
        }
    }

    /// Runs the process to its end.
    /// - Parameter user: a user other than the present one, who must be root.
    static func run(
        _ path: String,
        from first: Int,
        count: Int,
        fault: String? = nil,
        at call: Int = 0,
        user: String? = nil
    ) throws -> Writer {
        let process = Process()
        let program = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appendingPathComponent("storage-writer")
        process.executableURL = program
        process.arguments = [path, "\(first)", "\(count)"] + (fault.map { [$0, "\(call)"] } ?? [])
        if let user {
            process.executableURL = URL(fileURLWithPath: setpriv)
            process.arguments = ["--reuid=\(user)", "--clear-groups", program.path] + (process.arguments ?? [])
        }
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let said = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return Writer(
            text: String(decoding: said, as: UTF8.self),
            isKilled: process.terminationReason == .uncaughtSignal
        )
    }

    static let setpriv = "/usr/bin/setpriv"
    static var hasSetpriv: Bool { FileManager.default.isExecutableFile(atPath: setpriv) }
}
