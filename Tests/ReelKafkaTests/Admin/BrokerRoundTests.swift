import Testing

@testable import ReelKafka

/// Tests a round of the same question to all brokers, because one broker can lag.
@Suite struct BrokerRoundTests {
    @Test("it is over once each broker that any of them knows has answered") func itIsOverOnce() {
        var round = BrokerRound(fromMs: 100, untilMs: 1_000)
        round.hear(1, of: [1])
        #expect(!round.isOver(nowMs: 99), "it may have just started")
        #expect(round.isOver(nowMs: 100))
        round.hear(2, of: [1, 2, 3])
        #expect(!round.isOver(nowMs: 100))
        // The broker that lags knows only itself.
        round.hear(1, of: [1])
        #expect(!round.isOver(nowMs: 100))
        round.hear(3, of: [2, 3])
        #expect(round.isOver(nowMs: 100))
    }

    @Test("a round ends at its deadline when a broker does not answer") func endsAtDeadline() {
        var round = BrokerRound(fromMs: 100, untilMs: 1_000)
        round.hear(1, of: [1, 2])
        #expect(!round.isOver(nowMs: 999))
        #expect(round.isOver(nowMs: 1_000))
    }

    @Test("a round without any answer does not end before its deadline") func waitsWithoutAnswers() {
        let round = BrokerRound(fromMs: 100, untilMs: 1_000)
        #expect(!round.isOver(nowMs: 999))
    }
}
