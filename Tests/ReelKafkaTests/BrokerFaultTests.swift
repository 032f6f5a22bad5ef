import CRdkafka
import EventLogConformance
import NodeTestSupport
import ReelCore
import ReelKafka
import ReelLog
import Synchronization
import TestSupport
import Testing

/// Tests a log under faults of brokers and networks, on librdkafka's mock cluster.
@Suite(.timeLimit(.minutes(5)))
struct BrokerFaultTests {
    /// A writer that appends numbered records, one call each, and collects the answers in the order of their arrival.
    final class Author: Sendable {
        let answers = Mutex<[(number: Int, result: Result<[Seq], LogError>)]>([])
        private let next = Atomic(0)

        func append(_ count: Int, to log: KafkaLog, partition: Int = 0) {
            for _ in 0..<count {
                let number = next.add(1, ordering: .relaxed).oldValue
                log.append([LogAppend("s", "\(number)")], to: partition) { result in
                    self.answers.withLock { $0.append((number, result)) }
                }
            }
        }

        var count: Int { answers.withLock { $0.count } }
        var failures: [LogError] {
            answers.withLock { $0.compactMap { if case .failure(let error) = $0.result { error } else { nil } } }
        }
    }

    @Test("nothing in flight is lost or reordered while all brokers are away") func away() async throws {
        let brokers = try MockBrokers(3)
        let refusals = Atomic(0)
        let log = try brokers.log(
            configuration: brokers.oneRequestAtATime,
            lines: { if $2.contains("Connection refused") { refusals.add(1, ordering: .relaxed) } }
        )
        defer { log.close() }
        let sink = CollectingSink()
        let author = Author()
        _ = log.tail(0, from: 0, to: sink)
        author.append(50, to: log)
        try await eventually("fifty") { sink.count >= 50 }
        brokers.down()
        author.append(50, to: log)
        try await eventually("librdkafka has noticed") { refusals.load(ordering: .relaxed) > 0 }
        author.append(50, to: log)
        #expect(author.count < 150)
        brokers.up()
        try await eventually("all answered") { author.count == 150 }
        #expect(author.failures.isEmpty)
        try await eventually("all read") { Set(sink.texts).count == 150 }
        expectOrder(sink, 150)
    }

    @Test("a leader that moves is followed, by appends, tails and reads") func leaderMoves() async throws {
        let brokers = try MockBrokers(3)
        let log = try brokers.log(configuration: brokers.oneRequestAtATime)
        defer { log.close() }
        let sink = CollectingSink()
        let author = Author()
        _ = log.tail(0, from: 0, to: sink)
        for (moves, leader) in ([1, 2, 3, 1, 3] as [Int32]).enumerated() {
            brokers.lead(log, 0, by: leader)
            author.append(20, to: log)
            try await eventually("all answered behind \(moves) moves") { author.count == 20 * (moves + 1) }
            #expect(try log.bounds(0).last >= 19)
        }
        #expect(author.failures.isEmpty)
        try await eventually("all read") { Set(sink.texts).count == 100 }
        expectOrder(sink, 100)
        #expect(try log.read(0, from: 0, to: 10, bytes: 1 << 20).entries.count == 11)
    }

    /// The errors after which librdkafka retries.
    static let passingErrors: [rd_kafka_resp_err_t] = [
        RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
        RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
        RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
        RD_KAFKA_RESP_ERR__TRANSPORT,
    ]

    @Test("an append succeeds after a broker refuses it temporarily", arguments: passingErrors)
    func retriesRefusedAppend(_ error: rd_kafka_resp_err_t) async throws {
        let brokers = try MockBrokers()
        let log = try brokers.log(configuration: brokers.oneRequestAtATime)
        defer { log.close() }
        let sink = CollectingSink()
        let author = Author()
        _ = log.tail(0, from: 0, to: sink)
        brokers.fail(.produce, error, error)
        author.append(40, to: log)
        try await eventually("all answered") { author.count == 40 }
        #expect(author.failures.isEmpty)
        try await eventually("all read") { Set(sink.texts).count == 40 }
        expectOrder(sink, 40)
    }

    @Test("a producer waits for a coordinator that is still loading") func coordinatorLoads() async throws {
        let brokers = try MockBrokers()
        brokers.fail(.producerId, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS, RD_KAFKA_RESP_ERR_NOT_COORDINATOR)
        let log = try brokers.log()
        defer { log.close() }
        let author = Author()
        author.append(20, to: log)
        try await eventually("all answered") { author.count == 20 }
        #expect(author.failures.isEmpty)
    }

    @Test("a producer keeps its first record when a broker refuses it and accepts the next one")
    func firstRefused() async throws {
        let brokers = try MockBrokers()
        let log = try brokers.log()
        defer { log.close() }
        let sink = CollectingSink()
        _ = log.tail(0, from: 0, to: sink)
        // The second request is sent before the first one is answered.
        brokers.delay(ms: 100)
        brokers.fail(.produce, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION)
        // The three records together are too large for one request.
        let big = LogAppend(key: [0x73], value: [UInt8](repeating: 0x61, count: 1 << 20))
        #expect(try await log.append([big, big, big]) == [0, 1, 2])
        try await eventually("all three") { sink.count == 3 }
    }

    @Test("a duplicate append succeeds without a seq") func duplicateSucceeds() async throws {
        let brokers = try MockBrokers()
        let log = try brokers.log()
        defer { log.close() }
        brokers.fail(.produce, RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER)
        #expect(try await log.append([LogAppend("s", "a")]) == [.none])
        #expect(try await log.append([LogAppend("s", "b")]).count == 1)
    }

    @Test(
        "a record that a broker rejects permanently fails, and later records succeed",
        arguments: [
            (RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, ErrorCode.tooLarge),
            (RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, .forbidden),
            (RD_KAFKA_RESP_ERR_INVALID_RECORD, .logUnavailable),
            (RD_KAFKA_RESP_ERR_POLICY_VIOLATION, .logUnavailable),
            (RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED, .logUnavailable),
        ]
    )
    func permanentRefusal(_ error: rd_kafka_resp_err_t, _ code: ErrorCode) async throws {
        let brokers = try MockBrokers()
        let log = try brokers.log()
        defer { log.close() }
        try await log.append([LogAppend("s", "a")])
        brokers.fail(.produce, error)
        let failure = await #expect(throws: LogError.self) { try await log.append([LogAppend("s", "b")]) }
        #expect(failure?.code == code)
        // librdkafka 2.16 remembers a missing right until it has asked again.
        #expect(try await log.appendOnceItGoes("c").count == 1)
    }

    @Test("more than may wait for the brokers is refused whole, and taken once there is room") func overloaded()
        async throws
    {
        let brokers = try MockBrokers()
        var configuration = brokers.configuration
        configuration.properties["queue.buffering.max.messages"] = "100"
        let log = try brokers.log(configuration: configuration)
        defer { log.close() }
        let author = Author()
        author.append(10, to: log)
        try await eventually("ten") { author.count == 10 }
        brokers.down()
        author.append(90, to: log)
        let failure = await #expect(throws: LogError.self) {
            try await log.append((0..<11).map { LogAppend("s", "x\($0)") })
        }
        #expect(failure?.code == .overloaded)
        #expect(log.counts.recordsInFlight == 90)
        author.append(10, to: log)
        brokers.up()
        try await eventually("all") { author.count == 110 }
        #expect(author.failures.isEmpty)
        try await eventually("nothing in flight") { log.counts.recordsInFlight == 0 && log.counts.bytesInFlight == 0 }
        #expect(!(try log.read(0, from: 0, to: 1000, bytes: 1 << 20).seen.contains { $0.text.hasPrefix("x") }))
    }

    @Test("a fatal producer error fails all records in flight, and a new producer continues")
    func replacesFailedProducer() async throws {
        let brokers = try MockBrokers()
        let log = try brokers.log()
        defer { log.close() }
        let author = Author()
        author.append(10, to: log)
        try await eventually("ten") { author.count == 10 }
        // All fifty records must be in flight at the same time.
        brokers.down()
        brokers.fail(.produce, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER)
        author.append(50, to: log)
        brokers.up()
        try await eventually("sixty") { author.count == 60 }
        #expect(author.failures.count == 50)
        #expect(author.failures.allSatisfy { $0.code == .logUnavailable })
        let seqs = try await log.appendOnceItGoes("on")
        #expect(log.counts.rebuilds == 1)
        #expect(try log.read(0, from: seqs[0], to: seqs[0], bytes: 100).seen.map(\.text) == ["on"])
        #expect(log.counts.recordsInFlight == 0)
    }

    @Test("a log names a missing right and creates its producer again at growing intervals") func missingRight()
        async throws
    {
        let brokers = try MockBrokers()
        for _ in 0..<20 { brokers.fail(.producerId, RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED) }
        let started = ContinuousClock.now
        let lines = Mutex<[String]>([])
        let log = try brokers.log { _, _, text in lines.withLock { $0.append(text) } }
        defer { log.close() }
        // The line comes although no record was appended.
        try await eventually("a line") { lines.withLock { $0.contains { $0.contains("has no right to Write") } } }
        // The line is written shortly before the appends fail.
        var code: ErrorCode?
        repeat {
            code = await #expect(throws: LogError.self) { try await log.append([LogAppend("s", "a")]) }?.code
        } while code == .logUnavailable
        #expect(code == .forbidden)
        try await eventually("the second one has failed, too") { log.counts.rebuilds >= 2 }
        brokers.clear(.producerId)
        try await log.appendOnceItGoes("b")
        #expect(ContinuousClock.now - started > .seconds(3.5))
    }

    @Test("fetch errors of all kinds leave a tail whole") func fetchErrors() async throws {
        let brokers = try MockBrokers()
        let log = try brokers.log()
        defer { log.close() }
        let sink = CollectingSink()
        let author = Author()
        _ = log.tail(0, from: 0, to: sink)
        for error in [
            RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
            RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
            RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR_UNKNOWN, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
        ] {
            let before = author.count
            brokers.fail(.fetch, error)
            author.append(10, to: log)
            try await eventually("ten more after \(error)") { Set(sink.texts).count == before + 10 }
            try await eventually("ten answers more") { author.count == before + 10 }
        }
        #expect(sink.error == nil)
        expectOrder(sink, 70)
        #expect(log.counts.doubts > 0)
        #expect(log.counts.holes == 0)
    }

    @Test("answers that come late are answers") func late() async throws {
        let brokers = try MockBrokers()
        brokers.delay(ms: 150)
        let log = try brokers.log()
        defer { log.close() }
        let sink = CollectingSink()
        let author = Author()
        _ = log.tail(0, from: 0, to: sink)
        author.append(20, to: log)
        try await eventually("all answered") { author.count == 20 }
        try await eventually("all read") { Set(sink.texts).count == 20 }
        #expect(author.failures.isEmpty)
        try await eventually("the end is told") { (try? log.bounds(0).last >= 19) ?? false }
    }

    @Test("a log that trims itself returns `truncated` to a reader below its first seq") func selfTrimmingLog()
        async throws
    {
        let brokers = try MockBrokers()
        let log = try brokers.log()
        defer { log.close() }
        let big = LogAppend(key: [0x73], value: [UInt8](repeating: 0x61, count: 1 << 20))
        // The mock cluster keeps 5 MiB of a partition.
        for _ in 0..<10 { try await log.append([big]) }
        let first = try log.bounds(0).first
        #expect(first > 0)
        let error = #expect(throws: LogError.self) { try log.read(0, from: 0, to: 5, bytes: 100) }
        #expect(error?.code == .truncated && error?.seq == first)
        let sink = CollectingSink()
        _ = log.tail(0, from: 0, to: sink)
        try await eventually("an error") { sink.error?.code == .truncated }
        #expect(sink.error?.seq == first)
    }

    @Test("close answers what no broker answers") func closeWhileAway() async throws {
        let brokers = try MockBrokers()
        let log = try brokers.log()
        let author = Author()
        author.append(5, to: log)
        try await eventually("five") { author.count == 5 }
        brokers.down()
        author.append(20, to: log)
        let started = ContinuousClock.now
        log.close()
        #expect(ContinuousClock.now - started < .seconds(30))
        #expect(author.count == 25)
        #expect(author.failures.count == 20)
        #expect(author.failures.allSatisfy { $0.code == .logUnavailable })
    }

    /// Expects each seq once, and the first copies of the records in order. The mock cluster keeps duplicates.
    private func expectOrder(_ sink: CollectingSink, _ count: Int) {
        let records = sink.records
        #expect(records.map(\.seq) == Array(0..<Seq(records.count)))
        var seen: Set<String> = []
        let first = records.map(\.text).filter { seen.insert($0).inserted }
        #expect(first == (0..<count).map { "\($0)" })
    }
}
