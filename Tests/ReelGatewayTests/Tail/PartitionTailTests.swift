import ReelCore
import ReelLog
import Synchronization
import Testing

@testable import ReelGateway
@testable import ReelNode

/// Tests a partition tail over a log with errors. The test itself passes the batches to the tail.
@Suite struct PartitionTailTests {
    let todo = StreamName("todo")!
    let site = Site(high: 1, low: 1)

    /// Collects the news of a tail as words.
    final class Told: Sendable {
        private let words = Mutex<[String]>([])

        func add(_ news: PartitionTail.News) {
            let word =
                switch news {
                case .batch(let batch): "read \(batch.seqs)\((batch.end?.next).map { " next \($0)" } ?? "")"
                case .skipped(let first): "skipped to \(first)"
                case .ended(let error, let isFenced): error.code.rawValue + (isFenced ? " for good" : "")
                }
            words.withLock { $0.append(word) }
        }

        var news: [String] {
            words.withLock { words in
                defer { words = [] }
                return words
            }
        }
    }

    func withTail(_ body: (MemoryLog, PartitionTail, Told) throws -> Void) throws {
        let log = try MemoryLog(partitions: 1)
        defer { log.close() }
        let told = Told()
        try body(
            log,
            PartitionTail(log: log, partition: 0, from: WarmStart(from: 0), hasRoom: { true }) { _, news in
                told.add(news)
            },
            told
        )
    }

    func append(_ log: MemoryLog, witness: Witness? = nil) {
        log.append([LogAppend(key: todo.key, value: Batches.value(site, 0, "x"), witness: witness)], to: 0) { _ in }
    }

    func barrier(_ log: MemoryLog, _ value: String) {
        log.append([LogAppend(key: Array("~reel".utf8), value: Array(value.utf8))], to: 0) { _ in }
    }

    func read(_ log: MemoryLog, _ seqs: ClosedRange<Seq>) throws -> RecordBatch {
        try log.read(0, from: seqs.lowerBound, to: seqs.upperBound, bytes: 1 << 20)
    }

    @Test("the tail accepts records of writers that have read the same log") func acceptsMatchingWitness() throws {
        try withTail { log, tail, told in
            append(log)
            let first = try read(log, 0...0)
            append(log, witness: first.witness(of: first.entries[0]))
            tail.received(first)
            tail.received(try read(log, 1...1))
            append(log, witness: first.witness(of: first.entries[0]))
            tail.received(try read(log, 2...2))
            #expect(told.news == ["read 0..<1", "read 1..<2", "read 2..<3"])
        }
    }

    @Test("the tail diverges permanently at a record of a writer that has read another log") func divergesPermanently()
        throws
    {
        try withTail { log, tail, told in
            append(log)
            tail.received(try read(log, 0...0))
            append(log, witness: Witness(seq: 0, hash: 1))
            tail.received(try read(log, 1...1))
            #expect(told.news == ["read 0..<1", "diverged for good"])
            append(log)
            tail.received(try read(log, 2...2))
            #expect(told.news.isEmpty)
        }
    }

    @Test("the last record of a batch is checked against its first") func theLastRecordOf() throws {
        try withTail { log, tail, told in
            append(log)
            append(log)
            append(log, witness: Witness(seq: 0, hash: 1))
            tail.received(try read(log, 0...2))
            #expect(told.news == ["diverged for good"])
        }
    }

    @Test("the tail diverges at a record of a writer that has read beyond it") func divergesOnFutureWitness() throws {
        try withTail { log, tail, told in
            append(log, witness: Witness(seq: 7, hash: 1))
            tail.received(try read(log, 0...0))
            #expect(told.news == ["diverged for good"])
        }
    }

    @Test("the tail ignores the witness of a foreign record") func ignoresForeignWitness() throws {
        let wrong = Witness(seq: 0, hash: 1)
        let foreign = [
            LogAppend(key: todo.key, value: Array("text".utf8), witness: wrong),
            LogAppend(key: Array("~todo".utf8), value: Batches.value(site, 0, "x"), witness: Witness(seq: 9, hash: 1)),
        ]
        try withTail { log, tail, told in
            append(log)
            tail.received(try read(log, 0...0))
            log.append(foreign, to: 0) { _ in }
            append(log)
            log.append(foreign, to: 0) { _ in }
            tail.received(try read(log, 1...5))
            log.append(foreign, to: 0) { _ in }
            append(log, witness: wrong)
            log.append(foreign, to: 0) { _ in }
            tail.received(try read(log, 6...10))
            #expect(told.news == ["read 0..<1", "read 1..<6", "diverged for good"])
        }
    }

    @Test("it stops before a barrier that it does not know") func itStopsBeforeA() throws {
        try withTail { log, tail, told in
            append(log)
            barrier(log, #"{"fold":2,"type":"barrier"}"#)
            append(log)
            tail.received(try read(log, 0...2))
            #expect(told.news == ["read 0..<1", "internal for good"])
            tail.received(try read(log, 1...2))
            #expect(told.news.isEmpty)
        }
    }

    @Test("the tail names the next epoch after the end of its epoch") func namesNextEpoch() throws {
        try withTail { log, tail, told in
            append(log)
            tail.received(try read(log, 0...0))
            barrier(log, #"{"end":"0000000000000077","type":"barrier"}"#)
            append(log)
            tail.received(try read(log, 1...2))
            #expect(told.news == ["read 0..<1", "read 1..<3 next 0000000000000077"])
        }
    }

    @Test("a hole at the end of a batch ends the row of seeds") func aHoleAtThe() throws {
        let voids = Mutex<[VoidTally]>([])
        let log = try MemoryLog(partitions: 1)
        defer { log.close() }
        let tail = PartitionTail(log: log, partition: 0, from: WarmStart(from: 0), hasRoom: { true }) { _, news in
            if case .batch(let batch) = news { voids.withLock { $0.append(batch.voids) } }
        }
        let seed = Array(#"{"line":{"end":-1,"op":4,"site":"\#(site)"},"type":"seed"}"#.utf8)
        func seeds(_ log: MemoryLog) { log.append([LogAppend(key: todo.key, value: seed)], to: 0) { _ in } }
        seeds(log)
        log.leaveHole(0)
        tail.received(try read(log, 0...1))
        seeds(log)
        tail.received(try read(log, 2...2))
        #expect(voids.withLock { $0.map(\.counts) } == [[.hole: 1], [.lateSeed: 1]])
    }

    @Test("the tail continues at the first seq after a trim") func continuesAfterTrim() throws {
        try withTail { log, tail, told in
            for _ in 0..<5 { append(log) }
            tail.received(try read(log, 0...0))
            log.trim(0, before: 3)
            tail.failed(LogError(.truncated, "trimmed", seq: 3))
            tail.received(try read(log, 3...4))
            #expect(told.news == ["read 0..<1", "skipped to 3", "truncated", "read 3..<5"])
        }
    }

    @Test("where all was trimmed the log answers all the same") func whereAllWasTrimmed() throws {
        try withTail { log, tail, _ in
            for _ in 0..<3 { append(log) }
            tail.received(try read(log, 0...2))
            log.trim(0, before: 3)
            #expect(try !tail.probe())
            append(log)
            #expect(try tail.probe())
        }
    }
}
