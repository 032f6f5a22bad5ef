import ReelCore
import Testing

@testable import ReelGateway

/// Tests which nodes a gateway asks one question, and when, in virtual time.
@Suite struct HedgedQuestionTests {
    private let delayMs: Int64 = 300

    /// Wraps a question, so that an expectation can contain its mutating calls.
    private final class RunCheck {
        private var question: HedgedQuestion

        init(_ question: HedgedQuestion) { self.question = question }

        var asked: [Int] { question.asked }
        var hasNext: Bool { question.hasNext }
        func start(nowMs: Int64) -> [HedgedQuestion.Action] { question.start(nowMs: nowMs) }
        func giveUp() -> [HedgedQuestion.Action] { question.giveUp() }

        func delayPassed(mayHedge: Bool, nowMs: Int64) -> [HedgedQuestion.Action] {
            question.delayPassed(mayHedge: mayHedge, nowMs: nowMs)
        }

        func answered(_ index: Int, nowMs: Int64) -> [HedgedQuestion.Action] {
            question.answered(index, nowMs: nowMs)
        }

        func refused(_ index: Int, seq: Seq, nowMs: Int64) -> [HedgedQuestion.Action] {
            question.refused(index, seq: seq, nowMs: nowMs)
        }

        func failed(_ index: Int, nowMs: Int64) -> [HedgedQuestion.Action] { question.failed(index, nowMs: nowMs) }
    }

    private func question(_ nodes: Int) -> RunCheck { RunCheck(HedgedQuestion(nodes: nodes, delayMs: delayMs)) }

    @Test("the first answer is passed on, and no other node is asked")
    func answer() {
        let one = question(3)
        #expect(one.start(nowMs: 0) == [.ask(0), .wait])
        #expect(one.answered(0, nowMs: 299) == [.pass(0)])
        #expect(!one.hasNext && one.asked.isEmpty)
        #expect(one.delayPassed(mayHedge: true, nowMs: 300).isEmpty)
        #expect(one.failed(0, nowMs: 400).isEmpty && one.refused(0, seq: 1, nowMs: 400).isEmpty)
    }

    @Test("a node that is silent for the delay is asked beside the next one; the first answer counts")
    func hedge() {
        for winner in 0...1 {
            let one = question(2)
            _ = one.start(nowMs: 0)
            #expect(one.delayPassed(mayHedge: true, nowMs: delayMs) == [.ask(1)], "there is no third to wait for")
            let actions = one.answered(winner, nowMs: 310)
            #expect(actions == [.cancel(1 - winner, wasSilent: winner == 1), .pass(winner)])
            #expect(one.answered(1 - winner, nowMs: 311).isEmpty, "what was cancelled does not count any more")
        }
    }

    @Test("where two of three nodes hang, an answer is there within a second")
    func withinASecond() {
        let settings = GatewaySettings()
        let one = RunCheck(HedgedQuestion(nodes: 3, delayMs: settings.hedgeMs))
        var (nowMs, actions): (Int64, [HedgedQuestion.Action]) = (0, one.start(nowMs: 0))
        while nowMs < 1_000, !actions.contains(.ask(2)) {
            #expect(actions.last == .wait)
            nowMs += settings.hedgeMs
            actions = one.delayPassed(mayHedge: true, nowMs: nowMs)
        }
        let answerMs = nowMs + settings.hedgeMs / 3
        #expect(answerMs <= 1_000)
        let end = one.answered(2, nowMs: answerMs)
        #expect(end == [.cancel(0, wasSilent: true), .cancel(1, wasSilent: true), .pass(2)])
    }

    @Test("where no more may be asked yet, the question waits and is looked at again")
    func withoutBudget() {
        let one = question(2)
        _ = one.start(nowMs: 0)
        #expect(one.delayPassed(mayHedge: false, nowMs: 300) == [.wait])
        #expect(one.delayPassed(mayHedge: false, nowMs: 600) == [.wait])
        #expect(one.delayPassed(mayHedge: true, nowMs: 900) == [.ask(1)])
    }

    @Test("a node is not called silent by one that was slow itself, or that was asked a moment before")
    func slowness() {
        let slow = question(2)
        _ = slow.start(nowMs: 0)
        _ = slow.delayPassed(mayHedge: true, nowMs: 300)
        #expect(slow.answered(1, nowMs: 600) == [.cancel(0, wasSilent: false), .pass(1)])
        let young = question(3)
        _ = young.start(nowMs: 0)
        _ = young.delayPassed(mayHedge: true, nowMs: 300)
        #expect(young.failed(1, nowMs: 310) == [.ask(2)])
        #expect(young.answered(2, nowMs: 320) == [.cancel(0, wasSilent: true), .pass(2)])
    }

    @Test("a node that fails is replaced at once, unless a later one is still to answer")
    func failure() {
        let one = question(3)
        _ = one.start(nowMs: 0)
        #expect(one.failed(0, nowMs: 5) == [.ask(1), .wait])
        #expect(one.delayPassed(mayHedge: true, nowMs: 305) == [.ask(2)])
        #expect(one.failed(1, nowMs: 310).isEmpty)
        #expect(one.asked == [2])
        #expect(one.failed(2, nowMs: 320) == [.refuse(with: nil)])
        #expect(one.failed(2, nowMs: 330).isEmpty, "it is told once")
        let none = question(0)
        #expect(none.start(nowMs: 0) == [.refuse(with: nil)])
    }

    @Test("a client receives the refusal of the furthest node, or the last of equal refusals")
    func refusal() {
        func told(_ seqs: [Seq?]) -> HedgedQuestion.Action? {
            let one = question(seqs.count)
            var actions = one.start(nowMs: 0)
            for (index, seq) in seqs.enumerated() {
                #expect(actions.first == .ask(index))
                actions = seq.map { one.refused(index, seq: $0, nowMs: 1) } ?? one.failed(index, nowMs: 1)
            }
            return actions.count == 1 ? actions[0] : nil
        }
        #expect(told([5, 90, 7]) == .refuse(with: 1))
        #expect(told([-1, -1, -1]) == .refuse(with: 2))
        #expect(told([4, -1, nil]) == .refuse(with: 0), "a node that does not answer says less than one that refuses")
        #expect(told([nil, nil]) == .refuse(with: nil))
    }

    @Test("an answer that comes beside a refusal is passed on")
    func refusalAndAnswer() {
        let one = question(2)
        _ = one.start(nowMs: 0)
        _ = one.delayPassed(mayHedge: true, nowMs: 300)
        #expect(one.refused(1, seq: 3, nowMs: 310).isEmpty, "the first may still answer")
        #expect(one.answered(0, nowMs: 900) == [.pass(0)])
    }

    @Test("the gateway cancels all requests of a question when its client disconnects")
    func cancelsAbandonedQuestion() {
        let one = question(3)
        _ = one.start(nowMs: 0)
        _ = one.delayPassed(mayHedge: true, nowMs: 300)
        #expect(one.giveUp() == [.cancel(0, wasSilent: false), .cancel(1, wasSilent: false)])
        #expect(one.failed(0, nowMs: 301).isEmpty && !one.hasNext && one.giveUp().isEmpty)
    }
}

/// Tests the record that a gateway keeps of each node that it asks, in virtual time.
@Suite struct PeerRecordTests {
    @Test("a silent node is known for a while, or until it answers")
    func silence() {
        var record = PeerRecord()
        record.wasSilent("a", nowMs: 1_000)
        let endMs = 1_000 + PeerRecord.silentMs
        #expect(record.isSilent("a", nowMs: endMs - 1) && !record.isSilent("a", nowMs: endMs))
        #expect(!record.isSilent("b", nowMs: 1_000))
        record.answered("a", 3)
        #expect(!record.isSilent("a", nowMs: 1_001))
    }

    @Test("a refusal is of one partition, and short")
    func refusal() {
        var record = PeerRecord()
        record.refused("a", 3, nowMs: 0)
        #expect(record.hasRefused("a", 3, nowMs: PeerRecord.refusedMs - 1))
        #expect(!record.hasRefused("a", 3, nowMs: PeerRecord.refusedMs))
        #expect(!record.hasRefused("a", 4, nowMs: 1) && !record.isSilent("a", nowMs: 1))
        record.answered("a", 4)
        #expect(record.hasRefused("a", 3, nowMs: 1))
        record.answered("a", 3)
        #expect(!record.hasRefused("a", 3, nowMs: 1))
    }

    @Test("where all nodes are slow, a tenth more requests are sent, and a few at once")
    func budget() {
        var record = PeerRecord()
        let questions = 10_000
        var hedges = 0
        for _ in 0..<questions {
            record.asks()
            hedges += record.mayHedge(asked: ["a"], nowMs: 0) ? 1 : 0
        }
        #expect(hedges <= questions / PeerRecord.questionsPerHedge + PeerRecord.hedgesMax)
        #expect(hedges >= questions / PeerRecord.questionsPerHedge)
        for _ in 0..<questions { record.asks() }
        let burst = (0..<100).filter { _ in record.mayHedge(asked: ["a"], nowMs: 0) }.count
        #expect(burst == PeerRecord.hedgesMax, "what was not used does not pile up")
    }

    @Test("to leave a silent node for another one takes nothing of the budget")
    func replacement() {
        var record = PeerRecord()
        while record.mayHedge(asked: ["a"], nowMs: 0) {}
        record.wasSilent("a", nowMs: 0)
        let left = (0..<100).filter { _ in record.mayHedge(asked: ["a"], nowMs: 1) }.count
        let both = record.mayHedge(asked: ["a", "b"], nowMs: 1)
        #expect(left == 100 && !both, "b may still answer")
    }
}
