import CRdkafka
import EventLogConformance
import NodeTestSupport
import ReelCore
import ReelLog
import Synchronization
import TestSupport
import Testing

@testable import ReelKafka

/// Tests the questions of a tail in doubt and the decisions by their answers, without brokers.
@Suite(.timeLimit(.minutes(5)))
struct TailRevalidationTests {
    /// A source that answers from a log in memory. It can fail, or change the log, between two questions.
    final class Answers: RevalidationSource {
        let log: MemoryLog
        private let state = Mutex((asked: 0, longestMs: Int64(0)))
        /// The function that is called with the number of each question, before the answer.
        private let before: @Sendable (Int) throws(KafkaFailure) -> Void

        init(_ log: MemoryLog, before: @escaping @Sendable (Int) throws(KafkaFailure) -> Void = { _ in }) {
            self.log = log
            self.before = before
        }

        var asked: Int { state.withLock { $0.asked } }
        /// The longest wait of all questions so far, in milliseconds.
        var longestMs: Int64 { state.withLock { $0.longestMs } }

        func ask(
            _ partition: Int,
            from: Seq,
            to: Seq,
            bytes: Int,
            waitMs: Int64
        ) throws(KafkaFailure) -> RecordBatch {
            try question(waitMs)
            do throws(LogError) { return try log.read(partition, from: from, to: to, bytes: bytes) } catch {
                throw KafkaFailure(.told, error)
            }
        }

        func askEnds(_ partition: Int, waitMs: Int64) throws(KafkaFailure) -> Range<Seq> {
            try question(waitMs)
            do throws(LogError) {
                let bounds = try log.bounds(partition)
                return max(0, bounds.first)..<bounds.last + 1
            } catch {
                throw KafkaFailure(.told, error)
            }
        }

        private func question(_ waitMs: Int64) throws(KafkaFailure) {
            let number = state.withLock { state in
                state.asked += 1
                state.longestMs = max(state.longestMs, waitMs)
                return state.asked
            }
            try before(number)
        }
    }

    private static let away = KafkaFailure(.away, LogError(.logUnavailable, "away"))

    /// Returns a log with these records in each partition, and the witness of the last record.
    private func log(_ texts: String...) async throws -> (MemoryLog, Witness) {
        let log = try MemoryLog(partitions: 8)
        for partition in 0..<8 { try await log.append(texts.map { LogAppend("s", $0) }, to: partition) }
        let batch = try log.read(0, from: 0, to: .max - 1, bytes: 1 << 20)
        return (log, batch.witness(of: try #require(batch.entries.last)))
    }

    private func doubt(from next: Seq, last: Witness?, partition: Int = 0) -> TailRevalidation {
        TailRevalidation(
            tail: TailHandle(partition: partition, from: next, sink: CollectingSink()),
            last: last,
            done: { _ in }
        )
    }

    private func failure(_ outcome: TailRevalidation.Outcome?) -> ErrorCode? {
        if case .failed(let error, _) = outcome { error.code } else { nil }
    }

    private func texts(_ outcome: TailRevalidation.Outcome?) -> [String]? {
        if case .proceed(let batch, _) = outcome { batch.seen.map(\.text) } else { nil }
    }

    @Test("a tail delivers the next records when its last record is unchanged") func deliversAfterRevalidation()
        async throws
    {
        let (log, last) = try await log("a", "b")
        try await log.append([LogAppend("s", "c")])
        var doubt = doubt(from: 2, last: last)
        #expect(texts(doubt.ask(Answers(log))) == ["c"])
    }

    @Test("a tail does not continue on a log that is replaced before any of its questions", arguments: 1...4)
    func rejectsReplacedLog(
        question: Int
    ) async throws {
        let (log, last) = try await log("a", "b")
        try await log.append([LogAppend("s", "c")])
        let answers = Answers(log) { [log] (number) throws(KafkaFailure) in
            guard number == question else { return }
            log.rollBack(0, to: 0)
            log.append(["x", "y", "z"].map { LogAppend("s", $0) }, to: 0) { _ in }
        }
        var doubt = doubt(from: 2, last: last)
        let outcome = doubt.ask(answers)
        if answers.asked >= question {
            #expect(failure(outcome) == .diverged)
        } else {
            #expect(texts(outcome) == ["c"], "it was replaced after all that was asked")
        }
    }

    @Test("an end before what was read is believed after five seconds") func anEndBeforeWhat() async throws {
        let (log, last) = try await log("a", "b")
        log.rollBack(0, to: 1)
        for limit in [TailRevalidation.endDoubtMs - 1, TailRevalidation.endDoubtMs] {
            var doubt = doubt(from: 2, last: last)
            #expect(doubt.ask(Answers(log), clock: { 7_000 }) == nil)
            #expect(doubt.dueMs > 7_000)
            let outcome = doubt.ask(Answers(log), clock: { 7_000 + limit })
            #expect(failure(outcome) == (limit < TailRevalidation.endDoubtMs ? nil : .aheadOfLog))
        }
    }

    @Test("an end before what was read is not believed if more comes meanwhile") func anEndBeforeWhatWas() async throws
    {
        let (log, _) = try await log("a", "b")
        var doubt = doubt(from: 3, last: nil)
        #expect(doubt.ask(Answers(log), clock: { 0 }) == nil)
        try await log.append([LogAppend("s", "c"), LogAppend("s", "d")])
        #expect(texts(doubt.ask(Answers(log), clock: { TailRevalidation.endDoubtMs })) == ["d"])
    }

    @Test("an early end before the log was away does not count") func anEarlyEndBefore() async throws {
        let (log, last) = try await log("a", "b")
        log.rollBack(0, to: 1)
        var doubt = doubt(from: 2, last: last)
        #expect(doubt.ask(Answers(log), clock: { 0 }) == nil)
        let away = Answers(log) { (_) throws(KafkaFailure) in throw Self.away }
        #expect(doubt.ask(away, clock: { 2 * TailRevalidation.endDoubtMs }) == nil)
        #expect(doubt.ask(Answers(log), clock: { 2 * TailRevalidation.endDoubtMs + 1 }) == nil)
        #expect(failure(doubt.ask(Answers(log), clock: { 3 * TailRevalidation.endDoubtMs + 1 })) == .aheadOfLog)
    }

    @Test("a log that is away is asked ever more rarely and never for long") func aLogThatIsAway() async throws {
        let (log, last) = try await log("a")
        let answers = Answers(log) { (_) throws(KafkaFailure) in throw Self.away }
        var doubt = doubt(from: 1, last: last)
        var pauses: [Int64] = []
        for round in 0..<100 {
            #expect(doubt.ask(answers, clock: { Int64(round) * 10_000 }) == nil)
            pauses.append(doubt.dueMs - Int64(round) * 10_000)
        }
        #expect(pauses == pauses.sorted() && pauses.first == 20 && pauses.last == 1_000)
        #expect(answers.longestMs == TailRevalidation.patienceMs && TailRevalidation.patienceMs <= 1_000)
    }

    @Test("a lasting failure during revalidation ends the tail") func lastingFailureEndsTail() async throws {
        let (log, last) = try await log("a")
        var doubt = doubt(from: 1, last: last)
        let error = LogError(.logUnavailable, "no such topic")
        #expect(
            failure(doubt.ask(Answers(log) { (_) throws(KafkaFailure) in throw KafkaFailure(.lasting, error) })) != nil
        )
    }

    @Test("that there is no such partition is believed however short ones patience is") func thatThereIsNo()
        async throws
    {
        let brokers = try MockBrokers()
        brokers.topic("t")
        let reading = PartitionReading(
            topic: "t",
            configuration: brokers.configuration,
            counters: KafkaCounters(),
            log: { _, _, _ in }
        )
        defer { reading.close() }
        try await eventually("it is told") {
            do throws(KafkaFailure) {
                _ = try reading.ask(7, from: 0, to: 9, bytes: 1, waitMs: TailRevalidation.patienceMs)
                return false
            } catch {
                return error.kind == .lasting
            }
        }
    }

    @Test("a record that is damaged is not waited for") func aRecordThatIs() throws {
        let handle = try KafkaHandle(.reading, KafkaConfiguration(brokers: ["127.0.0.1:1"])) { _, _, _ in }
        for code in [
            RD_KAFKA_RESP_ERR__BAD_MSG, RD_KAFKA_RESP_ERR__BAD_COMPRESSION, RD_KAFKA_RESP_ERR_INVALID_MSG,
            RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED,
        ] {
            let failure = KafkaFailure(code, "read", handle, topic: "t")
            #expect(failure.kind == .lasting && failure.error.code == .logUnavailable)
        }
        #expect(KafkaFailure(RD_KAFKA_RESP_ERR__TRANSPORT, "read", handle, topic: "t").kind == .away)
    }

    @Test("a tail that has ended is asked for no more") func aTailThatHas() async throws {
        let (log, last) = try await log("a")
        var doubt = doubt(from: 1, last: last)
        doubt.tail.cancel()
        #expect(failure(doubt.ask(Answers(log) { (_) throws(KafkaFailure) in throw Self.away })) != nil)
    }

    @Test("partitions that are away hold up no other") func partitionsThatAreAway() async throws {
        let (log, last) = try await log("a")
        // There are more such partitions than threads, and they stay away until `back` is set.
        let back = Atomic(false)
        let away = Answers(log) { (_) throws(KafkaFailure) in
            if !back.load(ordering: .relaxed) { throw Self.away }
        }
        let doubts = TailRevalidations(asking: Selected(away: away, others: Answers(log)))
        let settled = Mutex<Set<Int>>([])
        for partition in 0..<8 {
            let tail = TailHandle(partition: partition, from: 1, sink: CollectingSink())
            doubts.look(TailRevalidation(tail: tail, last: last) { _ in _ = settled.withLock { $0.insert(partition) } })
        }
        try await eventually("the others") { settled.withLock { $0 } == [6, 7] }
        back.store(true, ordering: .relaxed)
        try await eventually("all") { settled.withLock { $0.count == 8 } }
    }

    /// A source in which the partitions 0 to 5 get their answers from `away`.
    private struct Selected: RevalidationSource {
        let away: Answers
        let others: Answers

        func ask(
            _ partition: Int,
            from: Seq,
            to: Seq,
            bytes: Int,
            waitMs: Int64
        ) throws(KafkaFailure) -> RecordBatch {
            let answers = partition < 6 ? away : others
            return try answers.ask(partition, from: from, to: to, bytes: bytes, waitMs: waitMs)
        }

        func askEnds(_ partition: Int, waitMs: Int64) throws(KafkaFailure) -> Range<Seq> {
            try (partition < 6 ? away : others).askEnds(partition, waitMs: waitMs)
        }
    }
}
