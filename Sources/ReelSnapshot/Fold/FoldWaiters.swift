import ReelCore
import ReelNet
import ReelNode
import Synchronization

/// The requests of all loops that wait until a stream is folded up to a seq. The fold thread ends waits after each
/// commit, and a timer of the request's loop ends a wait at its deadline. Nothing polls. `SnapshotNode.reach` bounds
/// the number of waits.
final class FoldWaiters: Sendable {
    /// A request that waits. Its ticket is used under the lock only.
    private final class Wait: @unchecked Sendable {
        let stream: StreamName
        let seq: Seq
        let then: LoopBound<() -> Void>
        var ticket: SeqWaits<Wait>.Ticket?
        /// True if the seq was read, and the stream waits for its turn.
        var isParked = false

        init(_ stream: StreamName, _ seq: Seq, _ then: LoopBound<() -> Void>) {
            (self.stream, self.seq, self.then) = (stream, seq, then)
        }
    }

    private struct State {
        /// The waits for seqs that are not read yet.
        var unread = SeqWaits<Wait>()
        /// The waits for seqs that are read, of streams that are folded less far.
        var parked: [StreamName: SeqWaits<Wait>] = [:]

        mutating func begin(_ wait: Wait) {
            wait.ticket = unread.add(wait, for: wait.seq)
        }

        /// Ends a wait. Returns true if the wait had not ended before.
        mutating func end(_ wait: Wait) -> Bool {
            guard let ticket = wait.ticket.take() else { return false }
            _ = wait.isParked ? parked[wait.stream]?.cancel(ticket) : unread.cancel(ticket)
            if parked[wait.stream]?.isEmpty == true { parked[wait.stream] = nil }
            return true
        }

        /// Ends the waits that are fulfilled, and returns them.
        mutating func folded(to status: PartitionSupervisor.Status) -> [Wait] {
            var ended: [Wait] = []
            for wait in unread.reached(status.readSeq) {
                if wait.seq <= status.seq(of: wait.stream) {
                    ended.append(wait)
                } else {
                    wait.isParked = true
                    wait.ticket = parked[wait.stream, default: SeqWaits()].add(wait, for: wait.seq)
                }
            }
            for stream in parked.keys {
                ended += parked[stream]?.reached(status.seq(of: stream)) ?? []
                if parked[stream]?.isEmpty == true { parked[stream] = nil }
            }
            for wait in ended { wait.ticket = nil }
            return ended
        }
    }

    private let state = Mutex(State())

    /// Calls `then` on the loop once `stream` is folded up to `seq`, after `ms` milliseconds at the latest. `isFolded`
    /// is called once after the wait has begun, so that no commit is missed. On the loop.
    func reach(
        _ seq: Seq,
        of stream: StreamName,
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
        let wait = Wait(stream, seq, LoopBound(end, on: loop))
        state.withLock { $0.begin(wait) }
        if isFolded() {
            if state.withLock({ $0.end(wait) }) { end() }
            return
        }
        timer = loop.timer(after: .milliseconds(max(0, ms))) { [self] in
            if state.withLock({ $0.end(wait) }) { end() }
        }
    }

    /// Ends the waits that `status` fulfills. On the fold thread.
    func folded(to status: PartitionSupervisor.Status) {
        let ended = state.withLock { $0.folded(to: status) }
        for wait in ended { wait.then.loop.execute { wait.then.value() } }
    }
}
