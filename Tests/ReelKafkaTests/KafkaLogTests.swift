import CRdkafka
import EventLogConformance
import NodeTestSupport
import ReelCore
import ReelKafka
import ReelLog
import TestSupport
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

    @Test("a tail brings the bytes of all records, and the witnesses at the ends of each batch") func ends()
        async throws
    {
        let brokers = try MockBrokers()
        let log = try brokers.log()
        defer { log.close() }
        let records = (0..<500).map { index in
            LogAppend("s\(index % 3)", "value \(index)", witness: Witness(seq: Seq(index), hash: UInt64(index)))
        }
        try await log.append(records, to: 0)
        let sink = CollectingSink()
        let tail = log.tail(0, from: 0, to: sink)
        try await eventually("all has come") { sink.count == records.count }
        tail.cancel()
        let seen = sink.records
        #expect(seen.map(\.text) == records.map { String(decoding: $0.value, as: UTF8.self) })
        #expect(seen.map(\.key) == records.map { String(decoding: $0.key, as: UTF8.self) })
        for batch in sink.batches {
            for seq in Set(batch.prefix(16)).union(batch.suffix(16)) {
                #expect(seen[Int(seq)].witness == records[Int(seq)].witness, "seq \(seq) of \(batch)")
            }
        }
    }
}
