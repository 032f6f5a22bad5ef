import ReelCore
import ReelLog
import ReelNode

/// The requests that wait on a loop until it has read a seq.
struct SeqWaiters {
    struct Waiter {
        var wait: SeqWaiter
        /// The stream in which a client of this epoch holds the seq; nil: no client vouches for the seq.
        var holder: StreamName?
        /// Called with nil once the seq was read, or with the reason why it will not be read.
        var then: (ReelError?) -> Void
    }

    /// For each partition the waiters that arrived while the log is asked for its end; nil: it is not being asked.
    var asking: [[Waiter]?]
    /// For each partition the waiters for the loop, or the log, to reach their seq.
    var waiting: [SeqWaits<Waiter>]
    /// The timer that ends waits at their deadlines, set for the earliest of them; nil: there are no waits.
    var timer: (dueMs: Int64, timer: any HostTimer)?

    init(partitions: Int) {
        asking = [[Waiter]?](repeating: nil, count: partitions)
        waiting = [SeqWaits<Waiter>](repeating: SeqWaits(), count: partitions)
    }

    /// Removes and returns the waiters of `partition`, or of all partitions if it is nil. The waiters in `asking` stay.
    mutating func removeAll(of partition: Int? = nil) -> [Waiter] {
        let partitions = partition.map { $0..<$0 + 1 } ?? waiting.indices
        return partitions.flatMap { waiting[$0].removeAll() }
    }
}

// Waiting until a seq was read.
extension GatewayLoop {
    /// Waits until this loop has read a seq. On the loop.
    ///
    /// - Parameters:
    ///   - seq: The seq to wait for.
    ///   - partition: The partition of the seq.
    ///   - holder: The stream of a client that holds the seq and names this epoch; nil: there is none.
    ///   - then: Called with nil once the seq was read, or with the reason why it will not be read. It may be called
    ///     before `reach` returns.
    func reach(_ seq: Seq, of partition: Int, holder: StreamName? = nil, then: @escaping (ReelError?) -> Void) {
        guard seq > rings[partition].head else { return then(nil) }
        if let error = health.stop(of: partition) { return then(error) }
        let settings = context.settings
        let wait = SeqWaiter(
            partition: partition,
            seq: seq,
            behindMs: settings.behindMs,
            aheadMs: settings.aheadMs
        )
        ask(SeqWaiters.Waiter(wait: wait, holder: holder, then: then))
    }

    /// Asks the log for its end. Waiters that arrive while a query is running share one follow-up query, because the
    /// running one may predate them.
    private func ask(_ waiter: SeqWaiters.Waiter) {
        let partition = waiter.wait.partition
        guard seqWaiters.asking[partition]?.append(waiter) == nil else { return }
        seqWaiters.asking[partition] = []
        ask(for: [waiter], about: partition)
    }

    private func ask(for first: [SeqWaiters.Waiter], about partition: Int) {
        let log = context.log
        loop.offload {
            try? log.bounds(partition)
        } then: { [self] bounds in
            if let bounds { health.logBegins(at: bounds.first, in: partition) }
            for waiter in first { resume(waiter, bounds) }
            let next = seqWaiters.asking[partition] ?? []
            seqWaiters.asking[partition] = next.isEmpty ? nil : []
            if !next.isEmpty { ask(for: next, about: partition) }
        }
    }

    private func resume(_ waiter: SeqWaiters.Waiter, _ bounds: LogBounds?) {
        let wait = waiter.wait
        // During the query this waiter was in no list. So an end of the log or a stop of the partition has not reached
        // it.
        if let divergence = health.divergence { return waiter.then(divergence) }
        if wait.seq <= rings[wait.partition].head { return waiter.then(nil) }
        if let error = health.stop(of: wait.partition) { return waiter.then(error) }
        var waiter = waiter
        step(waiter.wait.logEnds(at: bounds?.last, nowMs: nowMs), waiter)
    }

    private func step(_ step: SeqWaiter.Step, _ waiter: SeqWaiters.Waiter) {
        switch step {
        case .ask: ask(waiter)
        case .reached: waiter.then(nil)
        case .refuse(let error):
            // The node will not reach the position: a record before it cannot be read.
            if error.code == .nodeBehind, let reason = health.standstill(of: waiter.wait.partition) {
                return waiter.then(reason)
            }
            if error.code == .aheadOfLog, let stream = waiter.holder {
                context.meters.ahead.note(waiter.wait.seq, of: stream, in: waiter.wait.partition, error)
            }
            waiter.then(error)
        case .wait:
            let wait = waiter.wait
            seqWaiters.waiting[wait.partition].add(waiter, for: wait.seq, untilMs: wait.untilMs)
            endWaits(atMs: wait.untilMs)
        }
    }

    /// The maximum delay of a deadline, in milliseconds. Waits that end at about the same time share a timer.
    private static let deadlineDelayMs: Int64 = 50

    /// Makes sure that waits with this deadline end.
    private func endWaits(atMs untilMs: Int64) {
        let dueMs = max(nowMs + Self.deadlineDelayMs, untilMs)
        if let timer = seqWaiters.timer {
            guard dueMs < timer.dueMs else { return }
            timer.timer.cancel()
        }
        seqWaiters.timer = (dueMs, loop.once(after: dueMs - nowMs) { [self] in endOverdueWaits() })
    }

    /// Calls back the waiters for seqs that this loop has read by now.
    func endWaits(of partition: Int) {
        for waiter in seqWaiters.waiting[partition].reached(rings[partition].head) { waiter.then(nil) }
    }

    /// Advances the waits that have passed their deadline.
    private func endOverdueWaits() {
        seqWaiters.timer = nil
        for partition in seqWaiters.waiting.indices {
            for var waiter in seqWaiters.waiting[partition].due(nowMs: nowMs) {
                step(waiter.wait.tick(head: rings[partition].head, nowMs: nowMs), waiter)
            }
        }
        if let nextMs = seqWaiters.waiting.compactMap(\.nextDeadlineMs).min() { endWaits(atMs: nextMs) }
    }
}
