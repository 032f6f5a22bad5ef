import CRdkafka
import ReelCore
import ReelKafka
import ReelLog
import Testing

@Suite(.timeLimit(.minutes(5)))
struct KafkaLogTests {
    @Test("one event goes through the broker and comes back") func oneEvent() async throws {
        let brokers = try MockBrokers()
        let log = try brokers.log()
        defer { log.close() }
        let record = LogAppend(key: Array("todo".utf8), value: [1, 2], witness: Witness(seq: 7, hash: 9))
        let seqs = try await withCheckedThrowingContinuation { continuation in
            log.append([record], to: 1) { continuation.resume(with: $0) }
        }
        #expect(seqs == [0])
        let batch = try log.read(1, from: 0, to: 0, bytes: 100)
        let entry = try #require(batch.entries.first)
        #expect(entry.witness == Witness(seq: 7, hash: 9))
        batch.withRecord(entry) { key, value in
            #expect(Array(key) == record.key)
            #expect(Array(value) == record.value)
        }
        #expect(try log.bounds(1) == LogBounds(first: 0, last: 0))
    }
}
