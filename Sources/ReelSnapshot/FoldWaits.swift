import ReelCore
import ReelNet
import ReelNode
import Synchronization

/// The questions of all loops that wait until a partition is folded up to a seq. The folder ends waits after each
/// commit, and a timer of the question's loop ends a wait at its deadline. Nothing polls. `SnapshotNode.reach` bounds
/// their number.
final class FoldWaits: Sendable {
    private typealias Waits = SeqWaits<LoopBound<() -> Void>>

    private let waits = Mutex(Waits())

    /// Calls back on the loop once `folded` was told of this seq, at the latest after so many milliseconds. `isFolded`
    /// is asked once more when the wait has begun, so that no commit is missed. On the loop.
    func reach(
        _ seq: Seq,
        withinMs ms: Int64,
        on loop: EventLoop,
        isFolded: () -> Bool,
        then: @escaping () -> Void
    ) {
        var timer: LoopTimer?
        let end = {
            timer?.cancel()
            timer = nil
            then()
        }
        let waiter = LoopBound(end, on: loop)
        let ticket = waits.withLock { $0.add(waiter, for: seq) }
        if isFolded() {
            waits.withLock { $0.cancel(ticket) }?.value()
            return
        }
        timer = loop.timer(after: .milliseconds(max(0, ms))) { [self] in
            waits.withLock { $0.cancel(ticket) }?.value()
        }
    }

    /// The partition is folded up to here. From the folder's thread.
    func folded(to seq: Seq) {
        let ended = waits.withLock { $0.reached(seq) }
        for waiter in ended { waiter.loop.execute { waiter.value() } }
    }
}
