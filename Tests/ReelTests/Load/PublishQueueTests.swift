import ReelCore
import Testing

@testable import ReelLab

/// Tests which events are sent, and sent again, for any answers: in the order of ops, from the first op without an ack.
@Suite struct PublishQueueTests {
    private func queue(_ count: Int) -> PublishQueue {
        var queue = PublishQueue()
        for due in 0..<count { queue.add(dueNs: Int64(due)) }
        return queue
    }

    /// Returns the ops that are sent next.
    private func ops(_ queue: inout PublishQueue, most: Int = 100) -> [Op] { queue.next(most, backNs: 0).map(\.op) }

    @Test("events go out in order and once") func eventsGoOutIn() {
        var queue = queue(5)
        let out = (0..<3).map { _ in ops(&queue, most: 3) }
        #expect(out == [[0, 1, 2], [3, 4], []])
        let acked = (0..<2).map { _ in queue.acked(0)?.dueNs }
        #expect(acked == [0, nil])
        #expect(queue.unacked == 4 && queue.oldestDueNs == 1)
    }

    @Test("after a doubt all goes out again from the first without an ack") func afterADoubtAll() {
        var queue = queue(6)
        _ = ops(&queue)
        for op in [0, 1, 3] as [Op] { _ = queue.acked(op) }
        queue.rewind()
        let again = ops(&queue)
        #expect(again == [2, 3, 4, 5])
        _ = queue.acked(2)
        #expect(queue.unacked == 2, "3 was acked before")
    }

    @Test("a nack with retry sends again and one of an overtaken frame does not") func aNackWithRetry() {
        var queue = queue(4)
        _ = ops(&queue)
        let generation = queue.generation
        let first = queue.nacked(1, retryMs: 70, generation: generation)
        let second = queue.nacked(2, retryMs: 0, generation: generation)
        #expect(first == .sendAgain(afterMs: 70) && second == PublishQueue.Consequence.none, "one frame, one doubt")
        let again = ops(&queue)
        #expect(again == [1, 2, 3], "0 was taken, and its ack will come")
        let last = queue.nacked(2, retryMs: nil, generation: queue.generation)
        #expect(last == .refused)
    }

    @Test("no more are under way than the window") func noMoreAreUnder() {
        var queue = queue(PublishQueue.window + 10)
        let counts = (0..<2).map { _ in ops(&queue, most: 1 << 20).count }
        #expect(counts == [PublishQueue.window, 0])
        _ = queue.acked(0)
        let more = ops(&queue)
        #expect(more == [Op(PublishQueue.window)])
    }

    /// The nack of an append that failed before it reached the log may arrive before the nacks of earlier appends.
    @Test("the queue handles a nack of a lower op after it has rewound") func handlesLowerNack() {
        var queue = queue(6)
        _ = ops(&queue)
        #expect(queue.nacked(4, retryMs: 10, generation: 0) == .sendAgain(afterMs: 10))
        #expect(queue.nacked(5, retryMs: 0, generation: 0) == .none)
        #expect(queue.nacked(2, retryMs: 20, generation: 0) == .sendAgain(afterMs: 20))
        #expect(queue.nacked(3, retryMs: 0, generation: 0) == .none)
        #expect(ops(&queue) == [2, 3, 4, 5])
    }

    @Test("an event from an offline period is due when the client is back") func offlineEventsAreDue() {
        var queue = queue(3)
        _ = queue.next(1, backNs: 0)
        let entries = queue.next(5, backNs: 70)
        #expect(entries.map(\.dueNs) == [70, 70])
        queue.rewind()
        let again = queue.next(5, backNs: 90)
        #expect(again.map(\.dueNs) == [0, 70, 70], "sent again it is the same event")
    }

    @Test("the queue gives its unacked events to another site") func restartsAsAnotherSite() {
        var queue = queue(6)
        _ = ops(&queue)
        for op in [0, 1, 3] as [Op] { _ = queue.acked(op) }
        #expect(queue.highestAcked == 3)
        queue.restart()
        #expect(queue.highestAcked == -1 && queue.unacked == 3 && queue.handedOver == -1)
        queue.add(dueNs: 9)
        let entries = queue.next(100, backNs: 0)
        #expect(entries.map(\.op) == [0, 1, 2, 3] && entries.map(\.dueNs) == [2, 4, 5, 9])
    }

    @Test("it stays small") func itStaysSmall() {
        var queue = PublishQueue()
        for op in 0..<50_000 as Range<Op> {
            queue.add(dueNs: op)
            _ = ops(&queue)
            _ = queue.acked(op)
        }
        #expect(queue.unacked == 0 && queue.oldestDueNs == nil)
    }
}
