import Foundation
import ReelCore
import ReelLab
import ReelLog
import Synchronization
import TestSupport
import Testing

@testable import ReelTool

/// Tests that `reel dump` prints a log unchanged, and that `reel fold` reads that output.
@Suite struct DumpCommandTests {
    private let folder: TemporaryFolder
    private let todo = StreamName("todo")!

    init() throws {
        folder = try TemporaryFolder(prefix: "reel-dump-")
    }

    private func event(_ op: Int) -> String {
        let (site, fields) = ("00000000-0000-4000-8000-00000000000a", #"{"title":"Ä \"\#(op)\""}"#)
        return EventText.logged("insert", site, op, model: "task", id: "\(op)", fields: fields).text
    }

    /// Creates a log of four partitions with these records, each in the partition of its key.
    private func makeLog(_ records: [(key: String, value: String)]) async throws {
        let log = try SQLiteLog(path: folder.path + "/log.sqlite", partitions: 4)
        defer { log.close() }
        for (key, value) in records {
            let partition = StreamName(key)?.partition(of: 4) ?? todo.partition(of: 4)
            _ = try await withCheckedThrowingContinuation { continuation in
                log.append([LogAppend(key: Array(key.utf8), value: Array(value.utf8))], to: partition) {
                    continuation.resume(with: $0)
                }
            }
        }
    }

    private func dump(_ words: [String] = []) async -> CommandRun {
        await CommandRun(["dump", "--data", folder.path] + words)
    }

    @Test("every record is a line with its bytes") func everyRecordIsA() async throws {
        try await makeLog([("todo", event(0)), ("list", event(0)), ("todo", event(1)), ("~reel", "{}")])
        let lines = try LogLine.read(Array(await dump().output.utf8))
        #expect(lines.count == 4)
        let own = lines.filter { $0.key == todo.key }
        #expect(own.map(\.value) == [Array(event(0).utf8), Array(event(1).utf8)])
        #expect(own.map(\.partition) == [todo.partition(of: 4), todo.partition(of: 4)])
    }

    @Test("a streams records come with the barriers of its partition") func aStreamsRecordsCome() async throws {
        try await makeLog([("todo", event(0)), ("list", event(0)), ("~reel", "{}"), ("todo", event(1))])
        let lines = try LogLine.read(Array(await dump(["--stream", "todo", "--after", "0"]).output.utf8))
        #expect(lines.map { String(decoding: $0.key, as: UTF8.self) }.sorted() == ["todo", "~reel"])
    }

    @Test("the line of an empty seq is read and is no record") func theLineOfAn() throws {
        var bytes: [UInt8] = []
        LogLine.writeEmpty(partition: 3, seq: 14, epoch: Epoch(0xaa), to: &bytes)
        let line = #"{"partition":3,"seq":14,"empty":true,"epoch":"00000000000000aa"}"# + "\n"
        #expect(String(decoding: bytes, as: UTF8.self) == line)
        #expect(try LogLine.read(bytes).isEmpty)
    }

    @Test("the fold command folds the output of dump") func foldsDump() async throws {
        try await makeLog([("todo", event(0)), ("list", event(0)), ("todo", event(1))])
        let file = folder.path + "/lines.jsonl"
        try Data(await dump().output.utf8).write(to: URL(filePath: file))
        let run = await CommandRun(["fold", file, "--stream", "todo", "--partitions", "4", "--check"])
        #expect(run.code == .done, "\(run.errors)")
        #expect(run.output.contains(#""consumed":2,"#))
    }

    @Test("each line names its epoch and one of several is folded") func eachLineNamesIts() async throws {
        try await makeLog([("todo", event(0))])
        let log = folder.path + "/log.sqlite"
        let before = await dump().output
        #expect(await CommandRun(["epoch", "new", "--log", "sqlite:\(log)"]).code == .done)
        let after = await dump().output
        let epochs = try [before, after].map { try #require(try LogLine.read(Array($0.utf8)).first?.epoch) }
        #expect(epochs[0] != epochs[1])
        #expect(try LogLine.read(Array(after.utf8)).allSatisfy { $0.epoch == epochs[1] })
        let file = folder.path + "/lines.jsonl"
        try Data((before + after).utf8).write(to: URL(filePath: file))
        let mixed = await CommandRun(["fold", file, "--stream", "todo", "--partitions", "4"])
        #expect(mixed.code == .usage && mixed.errors.contains("choose one with --epoch"), "\(mixed.errors)")
        for epoch in epochs {
            let words = ["fold", file, "--stream", "todo", "--partitions", "4", "--epoch", "\(epoch)", "--check"]
            let run = await CommandRun(words)
            #expect(run.code == .done, "\(run.errors)")
            #expect(run.output.contains(#""epoch":"\#(epoch)""#), "\(run.output)")
        }
    }

    @Test("a streams dump is folded to its state in every epoch") func aStreamsDumpIs() async throws {
        try await makeLog([("todo", event(0)), ("list", event(0)), ("todo", event(1)), ("more", event(0))])
        let data = ["--data", folder.path]
        #expect(await CommandRun(["epoch", "new", "--partitions", "1"] + data).code == .done)
        let file = folder.path + "/lines.jsonl"
        for stream in ["todo", "list", "more"] {
            var states: [String] = []
            for words in [[], ["--stream", stream]] {
                try Data(await dump(words).output.utf8).write(to: URL(filePath: file))
                let run = await CommandRun(["fold", file, "--stream", stream, "--check"])
                states += run.output.split(separator: "\n").last.map { [String($0)] } ?? []
            }
            #expect(states.count == 2 && states[0] == states[1] && !states[0].contains(#""count":0"#), "\(states)")
        }
    }

    @Test("a log that is not there is not made") func aLogThatIs() async throws {
        let run = await dump()
        #expect(run.code == .failed)
        #expect(run.errors.contains("there is no log at `\(folder.path)/log.sqlite`"))
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/log.sqlite"))
        #expect(await CommandRun(["dump", "--log", "kafka:x"]).code == .usage)
    }

    @Test("dump prints the rule for an invalid stream name") func dumpPrintsNameRule() async throws {
        try await makeLog([("todo", event(0))])
        let run = await dump(["--stream", "a b"])
        #expect(run.code == .usage && run.errors.contains("expected are \(StreamName.rule)"), "\(run)")
    }

    @Test("an epoch that is not there is a mistake and those that are are named") func anEpochThatIs() async throws {
        try await makeLog([("todo", event(0))])
        let log = folder.path + "/log.sqlite"
        #expect(await CommandRun(["epoch", "new", "--log", "sqlite:\(log)"]).code == .done)
        let epochs = try SQLiteLogStore(path: log).epochs()
        #expect(epochs.count == 2)
        let run = await dump(["--epoch", "0123456789abcdef"])
        #expect(run.code == .usage, "\(run)")
        #expect(run.errors.contains("in `\(log)`: \(epochs[0]), \(epochs[1])\n"), "\(run)")
        for epoch in epochs { #expect(await dump(["--epoch", "\(epoch)"]).code == .done) }
    }

    @Test("a partition that is not there is named") func aPartitionThatIs() async throws {
        try await makeLog([("todo", event(0))])
        let run = await dump(["--partition", "4"])
        #expect(run.code == .usage)
        #expect(run.errors.contains("expected is 0 to 3"))
    }

    /// Creates a log of one stream whose record of op 1 is damaged.
    private func makeDamagedLog() async throws {
        for op in 0..<4 { try await makeLog([("todo", event(op))]) }
        let path = folder.path + "/log.sqlite"
        var bytes = try Data(contentsOf: URL(filePath: path))
        let place = try #require(bytes.range(of: Data(#""id":"1""#.utf8)))
        bytes[place.lowerBound + 6] ^= 1
        try bytes.write(to: URL(filePath: path))
    }

    @Test(
        "dump ends at damage; with --skip-damaged it prints the readable records, lists the others, and fails as well"
    )
    func skipDamaged() async throws {
        try await makeDamagedLog()
        let partition = todo.partition(of: 4)
        let stopped = await dump()
        #expect(stopped.code == .badData && stopped.errors.contains("seq 1 of partition \(partition) cannot be read"))
        #expect(stopped.errors.contains("reel epoch new --skip-damaged --from-snapshot DIR"), "\(stopped.errors)")
        #expect(try LogLine.read(Array(stopped.output.utf8)).map(\.seq) == [0])
        let whole = await dump(["--skip-damaged"])
        #expect(whole.code == .badData)
        #expect(try LogLine.read(Array(whole.output.utf8)).map(\.seq) == [0, 2, 3])
        #expect(whole.errors.contains("reel: partition \(partition), seqs 1 to 1: "), "\(whole.errors)")
        #expect(whole.errors.contains("reel: 1 seq in 1 range cannot be read"), "\(whole.errors)")
        let behind = await dump(["--skip-damaged", "--after", "1"])
        #expect(behind.code == .done && behind.errors.isEmpty, "\(behind.errors)")
    }

    @Test("epoch new accepts a damaged log only with --skip-damaged, and prints the loss")
    func newEpochSkipsDamage() async throws {
        try await makeDamagedLog()
        let words = ["epoch", "new", "--log", "sqlite:\(folder.path)/log.sqlite"]
        let refused = await CommandRun(words)
        #expect(refused.code == .badData && refused.errors.contains("`reel epoch new --skip-damaged"))
        for run in [
            await CommandRun(words + ["--skip-damaged", "--dry-run"]), await CommandRun(words + ["--skip-damaged"]),
        ] {
            #expect(run.code == .done, "\(run.errors)")
            let partition = "partition \(todo.partition(of: 4)); "
            #expect(run.output.contains(partition + "lost: seqs 1 to 1; "), "\(run.output)")
            #expect(run.output.contains(partition + "2 later events have no effect"), "\(run.output)")
            #expect(run.output.contains("1 streams, 1 objects"), "\(run.output)")
        }
        #expect(await dump().code == .done)
    }
}
