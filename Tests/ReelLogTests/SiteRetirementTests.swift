import ReelCore
import ReelLog
import Testing

/// Tests that the barrier that ends idle sites is written exactly once, even if its acknowledgement is lost.
@Suite(.timeLimit(.minutes(5))) struct SiteRetirementTests {
    private let todo = StreamName("todo")!
    private let down = LogError(.logUnavailable, "down")

    /// Returns a log with one partition and `count` records of the stream.
    private func log(_ count: Int = 10) async throws -> MemoryLog {
        let log = try MemoryLog(partitions: 1)
        for number in 0..<count { try await append("record \(number)", "todo", to: log) }
        return log
    }

    private func append(_ value: String, _ key: String, to log: MemoryLog) async throws {
        _ = try await withCheckedThrowingContinuation { continuation in
            log.append([LogAppend(key: Array(key.utf8), value: Array(value.utf8))], to: 0) {
                continuation.resume(with: $0)
            }
        }
    }

    /// Returns the values of all barriers by seq.
    private func barriers(_ log: MemoryLog) throws -> [Seq: String] {
        let batch = try log.read(0, from: 0, to: 99, bytes: 1 << 20)
        var found: [Seq: String] = [:]
        for entry in batch.entries {
            batch.withRecord(entry) { key, value in
                guard key.elementsEqual(StreamName.barrierKey.utf8) else { return }
                found[entry.seq] = String(decoding: value, as: UTF8.self)
            }
        }
        return found
    }

    private let retireFive = #"{"retire":{"before":5,"stream":"todo"},"type":"barrier"}"#

    @Test("the barrier is written once, with a witness of the record before it, and its seq is returned")
    func written() async throws {
        let log = try await log()
        #expect(try SiteRetirement(log, stream: todo).run(before: 5, foldedTo: 9) == 10)
        #expect(try barriers(log) == [10: retireFive])
        let batch = try log.read(0, from: 9, to: 10, bytes: 1 << 20)
        let entries = batch.entries
        #expect(entries.count == 2 && entries[1].witness == batch.witness(of: entries[0]))
    }

    @Test("a site retirement looks for an append with a lost answer and does not repeat it")
    func lostAnswer() async throws {
        let log = try await log()
        log.onAppend { [down] _, _ in .appendedButFailed(down) }
        #expect(try SiteRetirement(log, stream: todo).run(before: 5, foldedTo: 9) == 10)
        #expect(try barriers(log) == [10: retireFive])
    }

    @Test("a site retirement reports a failed append with the next step, and does not repeat it")
    func reportsFailedAppend() async throws {
        let log = try await log()
        log.onAppend { [down] _, _ in .fail(down) }
        let error = #expect(throws: LogError.self) {
            try SiteRetirement(log, stream: todo, readBackMs: 60).run(before: 5, foldedTo: 9)
        }
        #expect(error?.code == .logUnavailable)
        #expect(
            error?.message.contains("(down): once the log answers again, run the same command") == true,
            "\(error!)"
        )
        #expect(try barriers(log).isEmpty)
    }

    @Test("a site retirement does not repeat a barrier that an earlier run wrote after the folded seq")
    func doesNotRepeatBarrier() async throws {
        let log = try await log()
        let retirement = SiteRetirement(log, stream: todo)
        #expect(try retirement.run(before: 5, foldedTo: 9) == 10)
        try await append("more", "todo", to: log)
        #expect(try retirement.run(before: 5, foldedTo: 9) == 10)
        #expect(try retirement.run(before: 6, foldedTo: 9) == 12, "another seq is another barrier")
        #expect(try barriers(log).keys.sorted() == [10, 12])
    }

    @Test("a seq beyond what was folded, or below 0, is refused", arguments: [-1, 10, 1 << 60])
    func outOfRange(_ before: Seq) async throws {
        let log = try await log()
        let error = #expect(throws: LogError.self) {
            try SiteRetirement(log, stream: todo).run(before: before, foldedTo: 9)
        }
        #expect(error?.code == .badRequest && error?.message.contains("from 0 to 9") == true, "\(error!)")
        #expect(try barriers(log).isEmpty)
    }

    @Test("sites that were read beyond the end of the log are those of another log")
    func beyondTheLog() async throws {
        let log = try await log()
        let error = #expect(throws: LogError.self) {
            try SiteRetirement(log, stream: todo).run(before: 5, foldedTo: 12)
        }
        #expect(error?.code == .aheadOfLog && error?.message.contains("ends at seq 9") == true, "\(error!)")
        #expect(try barriers(log).isEmpty)
    }

    @Test("a site retirement fails if records after the folded seq were trimmed")
    func failsOnTrimmedRecords() async throws {
        let log = try await log()
        log.trim(0, before: 8)
        let error = #expect(throws: LogError.self) {
            try SiteRetirement(log, stream: todo).run(before: 3, foldedTo: 5)
        }
        #expect(error?.code == .truncated, "\(error!)")
        #expect(try SiteRetirement(log, stream: todo).run(before: 5, foldedTo: 7) == 10)
    }

    @Test("a site retirement writes nothing if the epoch ended after the folded seq")
    func respectsEpochEnd() async throws {
        let log = try await log()
        try await append(#"{"end":"00000000000000bb","type":"barrier"}"#, "~reel", to: log)
        let error = #expect(throws: LogError.self) {
            try SiteRetirement(log, stream: todo).run(before: 5, foldedTo: 9)
        }
        #expect(error?.code == .epochChanged && error?.message.contains("00000000000000bb") == true, "\(error!)")
        #expect(try barriers(log).count == 1)
    }

    @Test("a site retirement writes nothing after a barrier that this version does not know")
    func stopsAtUnknownBarrier() async throws {
        let log = try await log()
        try await append(#"{"retire":{"before":5,"more":1,"stream":"todo"},"type":"barrier"}"#, "~reel", to: log)
        let error = #expect(throws: LogError.self) {
            try SiteRetirement(log, stream: todo).run(before: 5, foldedTo: 9)
        }
        #expect(error?.message.contains("barrier at seq 10") == true, "\(error!)")
        #expect(try barriers(log).count == 1)
    }
}
