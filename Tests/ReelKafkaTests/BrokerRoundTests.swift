import Testing

@testable import ReelKafka

/// What one broker says is not what all of them say.
@Suite struct BrokerRoundTests {
    @Test func itIsOverOnceEachBrokerThatAnyOfThemKnowsHasAnswered() {
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

    @Test func whoDoesNotAnswerIsNotWaitedForForEver() {
        var round = BrokerRound(fromMs: 100, untilMs: 1_000)
        round.hear(1, of: [1, 2])
        #expect(!round.isOver(nowMs: 999))
        #expect(round.isOver(nowMs: 1_000))
    }

    @Test func anAnswerOfNobodyEndsNothing() {
        let round = BrokerRound(fromMs: 100, untilMs: 1_000)
        #expect(!round.isOver(nowMs: 999))
    }
}
