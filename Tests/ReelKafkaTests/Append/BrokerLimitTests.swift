import Dispatch
import ReelLog
import Synchronization
import TestSupport
import Testing

@testable import ReelKafka

/// Tests how the appender's limit asks the brokers, without brokers.
@Suite(.timeLimit(.minutes(1)))
struct BrokerLimitTests {
    private let usual = BatchLimit(batchBytes: 1_000_000, holdMs: 0)

    @Test("a refused batch leaves the next batch size unknown until the brokers have answered, and asks once")
    func asksOnce() async throws {
        let begun = Atomic(0)
        let answer = DispatchSemaphore(value: 0)
        let limit = BrokerLimit(usual, of: "t", log: { _, _, _ in }) {
            begun.add(1, ordering: .relaxed)
            answer.wait()
            return 100_000
        }
        limit.askIfDue()
        #expect(limit.batchBytes == 1_000_000, "nothing was refused")
        limit.refused(recordBytes: 10)
        for _ in 0..<10 { limit.askIfDue() }
        try await eventually("the brokers are asked") { begun.load(ordering: .relaxed) > 0 }
        limit.askIfDue()
        #expect(limit.batchBytes == nil && limit.recordBytesMax > 1 << 20)
        answer.signal()
        try await eventually("the answer has come") { limit.batchBytes != nil }
        #expect(limit.batchBytes == 100_000 && limit.recordBytesMax == 100_000 - BatchLimit.overhead)
        #expect(begun.load(ordering: .relaxed) == 1)
    }

    @Test("a log line tells each change of the limit, and nothing else") func logsChanges() async throws {
        let lines = Mutex<[(Int, String)]>([])
        let told = Atomic(100_000)
        let asked = Atomic(0)
        let limit = BrokerLimit(usual, of: "orders") { level, _, text in
            lines.withLock { $0.append((Int(level), text)) }
        } ask: {
            asked.add(1, ordering: .relaxed)
            return told.load(ordering: .relaxed)
        }
        limit.refused(recordBytes: 10)
        limit.askIfDue()
        try await eventually("a lower limit") { lines.withLock { $0.count } == 1 }
        // The limit is low, so the brokers are asked again without a refusal. Their answer is the same.
        for count in 2...4 {
            try await eventually("asked again") {
                limit.askIfDue()
                return asked.load(ordering: .relaxed) >= count
            }
        }
        #expect(lines.withLock { $0.count } == 1)
        told.store(1 << 30, ordering: .relaxed)
        try await eventually("the usual limit") {
            limit.askIfDue()
            return lines.withLock { $0.count } == 2
        }
        let texts = lines.withLock { $0 }
        #expect(texts.map(\.0) == [3, 5])
        #expect(texts[0].1.contains("topic orders") && texts[0].1.hasSuffix("up to 99488 bytes are taken"))
        #expect(texts[1].1.hasPrefix("the brokers take more again") && limit.batchBytes == 1_000_000)
    }
}
