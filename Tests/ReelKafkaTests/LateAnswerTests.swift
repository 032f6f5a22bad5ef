import CRdkafka
import EventLogConformance
import Foundation
import NodeTestSupport
import ReelCore
import ReelKafka
import ReelLog
import Synchronization
import TestSupport
import Testing

/// Tests a log on brokers that answer late, with errors, or not at all, on librdkafka's mock cluster.
@Suite(.timeLimit(.minutes(5)))
struct LateAnswerTests {
    private typealias Author = BrokerFaultTests.Author

    /// Returns a configuration with a timeout of one second for requests.
    private func impatient(_ brokers: MockBrokers) -> KafkaConfiguration {
        var configuration = brokers.oneRequestAtATime
        configuration.properties["socket.timeout.ms"] = "1000"
        configuration.properties["request.timeout.ms"] = "900"
        return configuration
    }

    private func texts(_ log: KafkaLog) throws -> [String] {
        try log.read(0, from: 0, to: 1_000, bytes: 1 << 20).seen.map(\.text)
    }

    /// Returns the texts of the log after its first successful read.
    private func textsOnceItAnswers(_ log: KafkaLog) async throws -> [String] {
        var found: [String]?
        try await eventually("it answers") {
            found = try? texts(log)
            return found != nil
        }
        return found ?? []
    }

    /// Expects one answer for the record. The log may have several copies of it, and the seq is that of the last copy
    /// or none.
    private func expectOneAnswer(_ author: Author, _ log: KafkaLog) throws {
        let found = try texts(log)
        #expect(Set(found) == ["0"])
        #expect(author.count == 1 && author.failures.isEmpty)
        let seqs = try author.answers.withLock { try $0[0].result.get() }
        #expect([[.none], [Seq(found.count - 1)]].contains(seqs))
    }

    @Test("an append that is done and answered too late is answered once")
    func late() async throws {
        let brokers = try MockBrokers()
        let log = try brokers.log(configuration: impatient(brokers))
        defer { log.close() }
        brokers.answerLate(.produce, ms: 5_000)
        let author = Author()
        author.append(1, to: log)
        try await eventually("an answer") { author.count > 0 }
        try expectOneAnswer(author, log)
        let seqs = try await log.append([LogAppend("s", "on")])
        #expect(try texts(log).last == "on" && seqs == [try log.bounds(0).last])
        #expect(author.count == 1)
    }

    @Test("a caller gets one answer when the broker's answer to a completed append is lost")
    func lostAnswer() async throws {
        let brokers = try MockBrokers()
        let log = try brokers.log(configuration: brokers.oneRequestAtATime)
        defer { log.close() }
        brokers.answerLate(.produce, ms: 600_000)
        let author = Author()
        author.append(1, to: log)
        try await eventually("it is in the log") { try log.bounds(0).last == 0 }
        #expect(author.count == 0)
        brokers.down()
        brokers.up()
        try await eventually("an answer") { author.count > 0 }
        try expectOneAnswer(author, log)
    }

    @Test("brokers that do not know for a moment where the ends are are asked again") func confused() async throws {
        let brokers = try MockBrokers()
        let log = try brokers.log(configuration: brokers.oneRequestAtATime)
        defer { log.close() }
        #expect(try await log.append([LogAppend("s", "a")]) == [0])
        for error in [
            RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
            RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
            RD_KAFKA_RESP_ERR__TRANSPORT,
        ] {
            brokers.fail(.ends, error)
            #expect(try log.bounds(0) == LogBounds(first: 0, last: 0))
            #expect(try texts(log) == ["a"])
        }
    }

    @Test(
        "appends wait and queries fail while the topic is unknown or has no leader",
        arguments: [true, false]
    )
    func unknownTopic(isLeaderless: Bool) async throws {
        let brokers = try MockBrokers()
        var configuration = brokers.oneRequestAtATime
        configuration.patience = 1
        let log = try brokers.log(configuration: configuration)
        defer { log.close() }
        if isLeaderless {
            brokers.lead(log, 0, by: -1)
        } else {
            brokers.say(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, of: log)
        }
        let author = Author()
        author.append(5, to: log)
        let failure = #expect(throws: LogError.self) { try log.bounds(0) }
        #expect(failure?.code == .logUnavailable)
        // A producer that already knows the topic continues with its cached metadata.
        if isLeaderless { #expect(author.count == 0) }
        brokers.lead(log, 0, by: 1)
        brokers.say(RD_KAFKA_RESP_ERR_NO_ERROR, of: log)
        try await eventually("answers") { author.count == 5 }
        #expect(author.failures.isEmpty)
        #expect(try await textsOnceItAnswers(log) == (0..<5).map { "\($0)" })
    }

    @Test("a leader that hangs is left for another one, by appends, tails and reads") func hung() async throws {
        let brokers = try MockBrokers(2)
        let log = try brokers.log(configuration: impatient(brokers))
        defer { log.close() }
        brokers.lead(log, 0, by: 1)
        let sink = CollectingSink()
        let author = Author()
        _ = log.tail(0, from: 0, to: sink)
        author.append(10, to: log)
        try await eventually("ten") { sink.count >= 10 && author.count == 10 }
        brokers.delay(ms: 600_000, of: 1)
        author.append(10, to: log)
        brokers.lead(log, 0, by: 2)
        try await eventually("ten more answers") { author.count == 20 }
        #expect(author.failures.isEmpty)
        try await eventually("all read") { Set(sink.texts).count == 20 }
        #expect(Set(try texts(log)).count == 20)
        brokers.delay(ms: 0, of: 1)
    }

    @Test("a broker that lags its leader does not end the log for a reader")
    func laggingBroker() async throws {
        let brokers = try MockBrokers(2)
        var configuration = brokers.configuration
        configuration.patience = 1
        let log = try brokers.log(partitions: 1, configuration: configuration)
        defer { log.close() }
        brokers.lead(log, 0, by: 1)
        for text in ["a", "b", "c"] { try await log.appendOnceItGoes(text) }
        brokers.follow(log, 0, by: 2, before: 1)
        // A delayed thread reports only that no answer came in time, so there are five attempts.
        var said = ""
        for _ in 0..<5 where !said.contains("a broker lags behind") {
            let error = #expect(throws: LogError.self) { try log.read(0, from: 1, to: 2, bytes: 1 << 20) }
            #expect(error?.code == .logUnavailable)
            said = error?.message ?? ""
        }
        #expect(said.contains("read up to seq 0, its last one is 2: a broker lags behind"), "\(said)")
        brokers.follow(log, 0, by: 2, before: nil)
        #expect(try await textsOnceItAnswers(log) == ["a", "b", "c"])
    }

    @Test("a port that takes connections and stays silent is named within ten seconds") func silent() throws {
        let listener = streamSocket()
        defer { close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        try withUnsafeMutablePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                try #require(bind(listener, address, size) == 0 && listen(listener, 16) == 0)
                try #require(getsockname(listener, address, &size) == 0)
            }
        }
        let broker = "127.0.0.1:\(UInt16(bigEndian: address.sin_port))"
        let store = try KafkaLogStore(KafkaConfiguration(brokers: [broker])) { _, _, _ in }
        defer { store.close() }
        // A delay of this thread can make an answer late too. So the check is repeated until most answers were in time,
        // or five were late.
        var (error, inTime, late) = (LogError?.none, 0, 0)
        repeat {
            let started = ContinuousClock.now
            error = #expect(throws: LogError.self) { try store.check() }
            if ContinuousClock.now - started < .seconds(10) { inTime += 1 } else { late += 1 }
        } while inTime <= late && late < 5
        #expect(inTime > late, "\(late) answers took ten seconds or more")
        #expect(error?.code == .logUnavailable)
        let message = error?.message ?? ""
        // Reel must report the silent broker before librdkafka does.
        #expect(message.contains(broker), "\(message)")
        #expect(message.contains("does not answer") || message.contains("no answer within 5 s"), "\(message)")
    }
}
