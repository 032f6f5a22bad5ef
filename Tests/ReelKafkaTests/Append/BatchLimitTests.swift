import CRdkafka
import Dispatch
import EventLogConformance
import NodeTestSupport
import ReelCore
import ReelLog
import Synchronization
import TestSupport
import Testing

@testable import ReelKafka

/// Tests the limit on the size of a record, and the refusal of larger records.
@Suite(.timeLimit(.minutes(5)))
struct BatchLimitTests {
    private let most = KafkaConfiguration.messageBytesMax

    /// Returns a limit after the brokers have refused a record and reported the size `told`.
    private func lowered(to told: Int?) -> BatchLimit {
        var limit = BatchLimit(batchBytes: 1_000_000)
        limit.refused(recordBytes: 10)
        limit.told(told, nowMs: 0)
        return limit
    }

    // MARK: Without brokers

    @Test("the limit is the size that the brokers report") func usesReportedLimit() {
        let limit = lowered(to: 100_000)
        #expect(limit.recordBytes == 100_000 - BatchLimit.overhead && limit.batchBytes == 100_000)
        #expect(!limit.isUnsettled)
    }

    @Test("the limit asks the brokers again each minute until they accept the usual size") func refreshesLoweredLimit()
    {
        var limit = BatchLimit(batchBytes: 1_000_000)
        #expect(!limit.shouldAsk(nowMs: .max - 1), "nothing was refused")
        limit.refused(recordBytes: 10)
        #expect(limit.shouldAsk(nowMs: 0))
        limit.told(100_000, nowMs: 0)
        #expect(!limit.shouldAsk(nowMs: 59_999) && limit.shouldAsk(nowMs: 60_000))
        limit.told(200_000, nowMs: 60_000)
        #expect(limit.recordBytes == 200_000 - BatchLimit.overhead && limit.batchBytes == 200_000)
        limit.told(nil, nowMs: 120_000)
        #expect(limit.batchBytes == 200_000 && limit.shouldAsk(nowMs: 180_000), "who does not answer changes nothing")
        limit.told(1 << 30, nowMs: 180_000)
        #expect(limit.recordBytes == most - BatchLimit.overhead && limit.batchBytes == 1_000_000)
        #expect(!limit.shouldAsk(nowMs: .max - 1))
    }

    @Test("brokers that take all of it have taught nothing unless they refuse again") func brokersThatTakeAll() {
        var limit = lowered(to: most)
        #expect(limit.recordBytes == most - BatchLimit.overhead && limit.batchBytes == 1_000_000)
        limit.refused(recordBytes: 10)
        limit.told(most, nowMs: 0)
        #expect(limit.batchBytes == 500_000, "they do not take what they say")
    }

    @Test("a refused batch of an earlier limit does not raise the limit") func earlierBatches() {
        var limit = lowered(to: 100_000)
        for _ in 0..<3 {
            limit.refused(recordBytes: 300_000)
            limit.told(100_000, nowMs: 0)
            #expect(limit.recordBytes <= 100_000 - BatchLimit.overhead)
        }
    }

    @Test("brokers that take the batch and not the largest record are believed") func brokersThatTakeThe() {
        #expect(lowered(to: 1_050_000).recordBytes == 1_050_000 - BatchLimit.overhead)
        #expect(lowered(to: 1_050_000).batchBytes == 1_000_000)
    }

    @Test("the limit halves the batch size or lowers the record size when the brokers report none")
    func lowersUnreportedLimit() {
        var limit = lowered(to: nil)
        #expect(limit.batchBytes == 500_000 && limit.recordBytes == most - BatchLimit.overhead)
        limit.refused(recordBytes: 600_000)
        limit.refused(recordBytes: 20)
        limit.told(nil, nowMs: 0)
        #expect(limit.batchBytes == 500_000 && limit.recordBytes == 599_999, "it was alone in its batch")
        for _ in 0..<100 {
            limit.refused(recordBytes: 0)
            limit.told(nil, nowMs: 0)
        }
        #expect(limit.batchBytes >= 1 && limit.recordBytes >= 1)
    }

    @Test("a right that is missing is tried for ever more rarely until it was there") func aRightThatIs() {
        var pace = ProducerBackoff()
        var nowMs: Int64 = 0
        var pauses: [Int64] = []
        func pause() -> Int64 {
            let since = nowMs
            while !pace.begins(nowMs: nowMs) { nowMs += 500 }
            return nowMs - since
        }
        for _ in 0..<8 {
            pace.failed(lacksRight: true, hasDelivered: false)
            pauses.append(pause())
        }
        #expect(pauses == [0, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000])
        pace.failed(lacksRight: true, hasDelivered: true)
        #expect(pause() == ProducerBackoff.pauseMinMs)
        pace.failed(lacksRight: true, hasDelivered: false)
        #expect(pause() == 2_000)
        pace.failed(lacksRight: false, hasDelivered: false)
        #expect(pause() == ProducerBackoff.pauseMinMs)
    }

    // MARK: With brokers

    @Test("a record that no broker would take is refused before any of its call is handed over") func tooLarge()
        async throws
    {
        let brokers = try MockBrokers()
        let log = try brokers.log()
        defer { log.close() }
        let large = LogAppend(key: [0x73], value: [UInt8](repeating: 0x61, count: 2 << 20))
        let failure = await #expect(throws: LogError.self) {
            try await log.append([LogAppend("s", "a"), large])
        }
        #expect(failure?.code == .tooLarge)
        #expect(try await log.append([LogAppend("s", "b")]) == [0])
    }

    @Test(
        "brokers that take less than before are asked how much, and what is larger is refused before it is sent",
        arguments: [RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE]
    )
    func lowered(_ error: rd_kafka_resp_err_t) async throws {
        let brokers = try MockBrokers()
        let log = try brokers.log(messageBytesMax: { 100_000 })
        defer { log.close() }
        #expect(log.recordBytesMax > 1 << 20)
        brokers.fail(.produce, error)
        let refused = await #expect(throws: LogError.self) { try await log.append([record(200_000)]) }
        #expect(refused?.code == .tooLarge)
        try await log.appendOnceItGoes("on")
        #expect(log.recordBytesMax < 100_000 && log.counts.rebuilds == 1)
        let again = await #expect(throws: LogError.self) { try await log.append([record(200_000)]) }
        #expect(again?.code == .tooLarge)
        #expect(try await log.append([record(90_000)]).count == 1, "what fits is taken")
        #expect(log.counts.rebuilds == 1 && log.counts.recordsInFlight == 0)
    }

    @Test("the log lowers its batch or record limit when the brokers do not report one") func learnsLimitFromRefusals()
        async throws
    {
        let brokers = try MockBrokers()
        var configuration = brokers.configuration
        configuration.properties["batch.size"] = "100000"
        let log = try brokers.log(configuration: configuration)
        defer { log.close() }
        let most = log.recordBytesMax
        brokers.fail(.produce, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
        await #expect(throws: LogError.self) { try await log.append([record(500)]) }
        try await log.appendOnceItGoes("on")
        #expect(log.recordBytesMax == most, "it may have been the batch")
        brokers.fail(.produce, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
        await #expect(throws: LogError.self) { try await log.append([record(200_000)]) }
        try await log.appendOnceItGoes("on")
        #expect(log.recordBytesMax == 200_000, "it was alone in its batch, and has one byte of key")
    }

    private func record(_ bytes: Int) -> LogAppend {
        LogAppend(key: [0x73], value: [UInt8](repeating: 0x61, count: bytes))
    }

    @Test("a limit rises again while the log is open, once the brokers take more") func risen() async throws {
        let brokers = try MockBrokers()
        brokers.topic("t")
        let told = Atomic(100_000)
        let usual = BatchLimit(batchBytes: brokers.configuration.batchBytes, holdMs: 1)
        let limit = BrokerLimit(usual, of: "t", log: { _, _, _ in }, ask: { told.load(ordering: .relaxed) })
        let appender = try Appender(
            topic: "t",
            configuration: brokers.configuration,
            counters: KafkaCounters(),
            limit: limit,
            log: { _, _, _ in }
        )
        defer { appender.close() }
        brokers.fail(.produce, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
        appender.append([record(10)], to: 0) { _ in }
        try await eventually("a limit") { limit.recordBytesMax < 100_000 }
        told.store(1 << 30, ordering: .relaxed)
        try await eventually("none any more") { limit.recordBytesMax > 1 << 20 }
    }

    @Test("a slow answer about the limit does not delay append reports") func slowLimitAnswer() async throws {
        let brokers = try MockBrokers()
        let answer = DispatchSemaphore(value: 0)
        let log = try brokers.log(
            leaderless: 1,
            messageBytesMax: {
                answer.wait()
                answer.signal()
                return 100_000
            }
        )
        defer { log.close() }
        let waiting = Atomic(false)
        log.append([record(10)], to: 1) { _ in waiting.store(true, ordering: .relaxed) }
        brokers.fail(.produce, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
        let refused = await #expect(throws: LogError.self) { try await log.append([record(200_000)]) }
        #expect(refused?.code == .tooLarge)
        brokers.lead(log, 1, by: 1)
        try await eventually("the other one is answered") { waiting.load(ordering: .relaxed) }
        // Only the next producer waits for the answer about the limit.
        try await eventually("the producer has ended") { log.counts.rebuilds == 1 }
        #expect(log.recordBytesMax > 1 << 20)
        answer.signal()
        try await log.appendOnceItGoes("on")
        #expect(log.recordBytesMax < 100_000)
    }

    @Test("a partition without a leader does not keep the others from a producer that makes smaller batches")
    func leaderless() async throws {
        let brokers = try MockBrokers()
        let log = try brokers.log(leaderless: 1, messageBytesMax: { 100_000 })
        defer { log.close() }
        let fates = Mutex<[Result<[Seq], LogError>]>([])
        for _ in 0..<3 { log.append([record(10)], to: 1) { fate in fates.withLock { $0.append(fate) } } }
        brokers.fail(.produce, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
        await #expect(throws: LogError.self) { try await log.append([record(200_000)]) }
        #expect(try await log.appendOnceItGoes("on").count == 1)
        #expect(log.counts.recordsInFlight == 0)
        let codes = fates.withLock { $0 }.map { fate -> ErrorCode? in
            if case .failure(let error) = fate { error.code } else { nil }
        }
        #expect(codes == [.logUnavailable, .logUnavailable, .logUnavailable], "whether they are in the log is unknown")
        brokers.lead(log, 1, by: 1)
        #expect(try await log.append([LogAppend("s", "b")], to: 1).count == 1)
    }
}
