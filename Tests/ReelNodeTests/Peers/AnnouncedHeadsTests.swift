import ReelCore
import Testing

@testable import ReelNode

/// Tests the lag of nodes, computed from announcements of different ages.
@Suite struct AnnouncedHeadsTests {
    @Test("a position is compared with what was announced before it, and not with what came later")
    func ages() {
        let heads = AnnouncedHeads([(0, 100, 1_000), (0, 500_000, 3_000), (0, 90, 2_000), (1, 7, 3_000)])
        #expect(heads.lag(partition: 0, seq: 100, heardMs: 1_000) == 0)
        #expect(heads.lag(partition: 0, seq: 90, heardMs: 2_000) == 10)
        #expect(heads.lag(partition: 0, seq: 400_000, heardMs: 2_999) == 0)
        #expect(heads.lag(partition: 0, seq: 400_000, heardMs: 3_000) == 100_000)
        #expect(heads.lag(partition: 0, seq: 90, heardMs: 0) == 0, "nothing was announced before")
        #expect(heads.lag(partition: 9, seq: 5, heardMs: 9_000) == 0)
    }

    @Test(
        "an implausible position has no lag, and changes that of no other node",
        arguments: [largestInteger, 1 << 48]
    )
    func implausible(seq: Seq) {
        let heads = AnnouncedHeads([(0, seq, 1_000), (0, 90, 2_000), (0, 100, 1_500)])
        #expect(heads.lag(partition: 0, seq: seq, heardMs: 1_000) == nil)
        #expect(heads.lag(partition: 0, seq: 90, heardMs: 2_000) == 10)
    }
}
