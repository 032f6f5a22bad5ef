import Testing

@testable import ReelKafka

/// What one broker says is not what all of them say.
@Suite struct BrokerRoundTests {
    @Test("it is over once each broker that any of them knows has answered") func itIsOverOnce() {
        var round = BrokerRound(fromMs: 100, untilMs: 1_000)
        round.hear(1, of: [1])
        #expect(!round.isOver(nowMs: 99), "it may have just started")
        #expect(round.isOver(nowMs: 100))
        round.hear(2, of: [1, 2, 3])
        #expect(!round.isOver(nowMs: 100))
        // The one that lags knows itself alone.
        round.hear(1, of: [1])
        #expect(!round.isOver(nowMs: 100))
        round.hear(3, of: [2, 3])
        #expect(round.isOver(nowMs: 100))
    }

    @Test("who does not answer is not waited for for ever") func whoDoesNotAnswer() {
        var round = BrokerRound(fromMs: 100, untilMs: 1_000)
        round.hear(1, of: [1, 2])
        #expect(!round.isOver(nowMs: 999))
        #expect(round.isOver(nowMs: 1_000))
    }

    @Test("an answer of nobody ends nothing") func anAnswerOfNobody() {
        let round = BrokerRound(fromMs: 100, untilMs: 1_000)
        #expect(!round.isOver(nowMs: 999))
    }
}
