import ReelCore
import Testing

@testable import ReelLab

/// Tests which ranges a reader holds, and which it fetches.
@Suite struct FollowedStreamTests {
    private func subscribed(_ epoch: UInt64, after: Seq, head: Seq = 100) -> ServerFrame.Subscribed {
        ServerFrame.Subscribed(
            stream: StreamName("s")!,
            epoch: Epoch(epoch),
            partition: 0,
            first: 0,
            head: head,
            after: after
        )
    }

    /// Returns the ranges that the view requests, at the first call and at the second.
    private func fetched(_ view: inout FollowedStream) -> [[ClosedRange<Seq>]] { [view.fetch(), view.fetch()] }

    @Test("frames and upto move it on") func framesAndUptoMove() {
        var view = FollowedStream()
        _ = view.subscribed(subscribed(1, after: 9))
        view.received(from: 10, to: 14, isFetched: false)
        #expect(view.reached == 14)
        view.upto(20)
        view.upto(18)
        let asked = fetched(&view)
        #expect(view.reached == 20 && asked == [[], []])
    }

    @Test("a jump leaves a hole that is fetched once") func aJumpLeavesA() {
        var view = FollowedStream()
        _ = view.subscribed(subscribed(1, after: -1))
        view.received(from: 0, to: 4, isFetched: false)
        view.ended()
        view.upto(50)
        #expect(view.reached == 4, "without a subscription nothing is proven")
        _ = view.subscribed(subscribed(1, after: 9))
        view.received(from: 10, to: 12, isFetched: false)
        #expect(view.reached == 4)
        let asked = fetched(&view)
        #expect(asked == [[5...9], []], "once")
        view.received(from: 5, to: 7, isFetched: true)
        #expect(!view.holds([5...9]))
        view.received(from: 8, to: 9, isFetched: true)
        #expect(view.holds([5...9]) && view.reached == 12)
        view.fetched()
        let more = fetched(&view)
        #expect(more == [[], []])
    }

    @Test("a large hole is fetched in pieces") func aLargeHoleIs() {
        var view = FollowedStream()
        _ = view.subscribed(subscribed(1, after: -1))
        _ = view.subscribed(subscribed(1, after: 250_000))
        let first = view.fetch()
        view.received(from: 0, to: 99_999, isFetched: true)
        view.fetched()
        let second = view.fetch()
        #expect([first, second] == [[0...99_999], [100_000...199_999]])
    }

    @Test("a followed stream restarts from the beginning in a new epoch") func restartsInNewEpoch() {
        var view = FollowedStream()
        _ = view.subscribed(subscribed(1, after: 50))
        view.received(from: 51, to: 60, isFetched: false)
        let isNew = view.subscribed(subscribed(2, after: -1))
        #expect(isNew && view.reached == -1 && view.epoch == Epoch(2))
    }

    @Test("a followed stream counts a folded state as all earlier seqs") func countsFoldedState() {
        var view = FollowedStream()
        view.loaded(Epoch(1), seq: 40)
        #expect(view.reached == 40)
        _ = view.subscribed(subscribed(1, after: 40))
        view.upto(45)
        #expect(view.reached == 45)
    }
}
