import EventLogConformance
import ReelCore
import ReelKafka
import ReelLog
import TestSupport
import Testing

/// Tests behavior that only a real broker has.
@Suite(.timeLimit(.minutes(10)), .onARealKafka)
struct RealKafkaTests {
    let kafka: RealKafka

    init() throws {
        kafka = try #require(RealKafka.fromEnvironment)
    }

    @Test("a log treats the markers of foreign transactions as holes and covers them") func transactionMarkers()
        async throws
    {
        let epoch = Epoch.random()
        let log = try kafka.log(epoch)
        defer { log.close() }
        let sink = CollectingSink()
        _ = log.tail(0, from: 0, to: sink)
        let stranger = try Admin(kafka.brokers, ["transactional.id": "stranger.\(epoch)"])
        try stranger.beginTransactions()
        try await log.append([LogAppend("s", "a")])
        try stranger.transaction("reel.\(epoch)", 0, "b", commit: true)
        try await log.append([LogAppend("s", "c")])
        try stranger.transaction("reel.\(epoch)", 0, "d", commit: false)
        try await eventually("the last marker") { try log.bounds(0) == LogBounds(first: 0, last: 5) }
        try await eventually("all is covered") { sink.batches.last?.upperBound == 6 }
        let batches = sink.batches
        #expect(batches.first?.lowerBound == 0)
        #expect(zip(batches, batches.dropFirst()).allSatisfy { $0.upperBound == $1.lowerBound })
        #expect(sink.texts == ["a", "b", "c", "d"])
        let seqs = sink.records.map(\.seq)
        #expect(seqs == seqs.sorted() && Set(seqs).count == 4)
        #expect(log.counts.holes >= 2)
        // A marker is written shortly after the end of its transaction, so it may be at any later offset.
        for (from, to) in [(0, 5), (1, 2), (2, 3), (3, 3), (5, 9), (3, 9)] as [(Seq, Seq)] {
            let batch = try log.read(0, from: from, to: to, bytes: 1 << 20)
            #expect(batch.seqs == from..<min(to, 5) + 1)
            #expect(batch.seen == sink.records.filter { batch.seqs.contains($0.seq) })
        }
        // After the markers, the tail continues with the next record.
        try await log.append([LogAppend("s", "e")])
        try await eventually("e") { sink.texts.last == "e" }
    }

    @Test("a topic that was made is known to every broker") func knownToAll() throws {
        let store = try KafkaLogStore(KafkaConfiguration(brokers: kafka.brokers)) { _, _, _ in }
        defer { store.close() }
        // Each client knows and asks only one broker.
        let clients = try kafka.brokers.map { try Admin([$0]) }
        for _ in 0..<10 * effort {
            let epoch = Epoch.random()
            try store.create(epoch, partitions: 4)
            let answers = try clients.map { try $0.known("reel.\(epoch)") }
            #expect(answers.map(\.led) == clients.map { _ in 4 })
            #expect(Set(answers.map(\.broker)).count == clients.count)
        }
    }

    @Test("a trimmed log returns `truncated` to a reader below its first seq and serves other readers")
    func trimmedLog()
        async throws
    {
        let epoch = Epoch.random()
        let log = try kafka.log(epoch)
        defer { log.close() }
        try await log.append((0..<20).map { LogAppend("s", "\($0)") })
        try Admin(kafka.brokers).trim("reel.\(epoch)", 0, before: 12)
        #expect(try log.bounds(0) == LogBounds(first: 12, last: 19))
        let error = #expect(throws: LogError.self) { try log.read(0, from: 5, to: 15, bytes: 999) }
        #expect(error?.code == .truncated && error?.seq == 12)
        let (below, above) = (CollectingSink(), CollectingSink())
        _ = log.tail(0, from: 11, to: below)
        _ = log.tail(0, from: 12, to: above)
        try await eventually("truncated") { below.error?.code == .truncated }
        #expect(below.error?.seq == 12)
        try await eventually("the rest") { above.count == 8 }
    }

    @Test(
        "a tail ends when its topic is deleted, and no tail continues on a new topic",
        arguments: [2, 9]
    )
    func deletedTopic(_ count: Int) async throws {
        let epoch = Epoch.random()
        let log = try kafka.log(epoch)
        defer { log.close() }
        let sink = CollectingSink()
        _ = log.tail(0, from: 0, to: sink)
        try await log.append((0..<5).map { LogAppend("s", "\($0)") })
        try await eventually("five") { sink.count == 5 }
        let operation = try Admin(kafka.brokers)
        try operation.delete("reel.\(epoch)")
        try await eventually("an error") { sink.error != nil }
        #expect(sink.error?.code == .logUnavailable)
        #expect(sink.error?.message.contains("reel.\(epoch)") == true)
        #expect(throws: LogError.self) { try log.bounds(0) }

        try operation.create("reel.\(epoch)", partitions: 1)
        let other = try kafka.open(epoch)
        defer { other.close() }
        try await other.append((0..<count).map { LogAppend("s", "new \($0)") })
        let again = CollectingSink()
        _ = log.tail(0, from: 5, to: again)
        try await eventually("another error") { again.error != nil }
        #expect(again.error?.code == (count < 5 ? .aheadOfLog : .diverged))
        #expect(again.count == 0)
    }
}
