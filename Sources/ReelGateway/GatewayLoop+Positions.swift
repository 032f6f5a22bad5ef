import ReelCore
import ReelLog
import ReelNode

/// Who waits on a loop until it has read a seq.
struct SeqWaiters {
    struct Waiter {
        var wait: SeqWaiter
        /// The stream whose position the seq is, as a client that names the epoch holds it; nil: nobody vouches for it.
        var holder: StreamName?
        /// Called without an error once it was read; or with the reason why that will not be.
        var then: (ReelError?) -> Void
    }

    /// For each partition who waits for what the log says of its end; nil: it is not being asked.
    var asking: [[Waiter]?]
    /// For each partition who waits for the loop, or the log, to get there.
    var waiting: [SeqWaits<Waiter>]
    /// The timer that ends waits at their deadlines, set for the earliest of them; nil: there are no waits.
    var timer: (dueMs: Int64, cancel: () -> Void)?

    init(partitions: Int) {
        asking = [[Waiter]?](repeating: nil, count: partitions)
        waiting = [SeqWaits<Waiter>](repeating: SeqWaits(), count: partitions)
    }

    /// Those that wait in a partition, or in all of them: they wait no longer.
    mutating func removeAll(of partition: Int? = nil) -> [Waiter] {
        let partitions = partition.map { $0..<$0 + 1 } ?? waiting.indices
        return partitions.flatMap { waiting[$0].removeAll() }
    }
}

// Until a seq was read.
extension GatewayLoop {
    /// Calls back without an error once this loop has read the seq; or with the reason why that will not be. `holder`:
    /// the stream of a client that holds the seq and names this epoch.
    func reach(_ seq: Seq, of partition: Int, holder: StreamName? = nil, then: @escaping (ReelError?) -> Void) {
        guard seq > rings[partition].head else { return then(nil) }
        if let error = share.stop(of: partition) { return then(error) }
        let settings = share.settings
        let wait = SeqWaiter(
            partition: partition,
            seq: seq,
            behindMs: settings.behindMs,
            aheadMs: settings.aheadMs
        )
        ask(SeqWaiters.Waiter(wait: wait, holder: holder, then: then))
    }

    /// Asks the log where it ends. Who wants to know that while it is asked already is too late for that answer: for
    /// all of those it is asked once more.
    private func ask(_ waiter: SeqWaiters.Waiter) {
        let partition = waiter.wait.partition
        guard seqWaiters.asking[partition]?.append(waiter) == nil else { return }
        seqWaiters.asking[partition] = []
        ask(for: [waiter], about: partition)
    }

    private func ask(for first: [SeqWaiters.Waiter], about partition: Int) {
        let log = share.log
        loop.offload {
            try? log.bounds(partition)
        } then: { [self] bounds in
            if let bounds { share.bounds(partition, are: bounds) }
            for waiter in first { goOn(waiter, bounds) }
            let next = seqWaiters.asking[partition] ?? []
            seqWaiters.asking[partition] = next.isEmpty ? nil : []
            if !next.isEmpty { ask(for: next, about: partition) }
        }
    }

    private func goOn(_ waiter: SeqWaiters.Waiter, _ bounds: LogBounds?) {
        let wait = waiter.wait
        // What ended the log, or stopped the partition, while the log was asked has not met this wait.
        if let divergence = share.divergence { return waiter.then(divergence) }
        if wait.seq <= rings[wait.partition].head { return waiter.then(nil) }
        if let error = share.stop(of: wait.partition) { return waiter.then(error) }
        var waiter = waiter
        step(waiter.wait.logEnds(at: bounds?.last, nowMs: nowMs), waiter)
    }

    private func step(_ step: SeqWaiter.Step, _ waiter: SeqWaiters.Waiter) {
        switch step {
        case .ask: ask(waiter)
        case .reached: waiter.then(nil)
        case .refuse(let error):
            // The node will not come to the position: a record before it cannot be read.
            if error.code == .nodeBehind, let reason = share.standstill(of: waiter.wait.partition) {
                return waiter.then(reason)
            }
            if error.code == .aheadOfLog, let stream = waiter.holder {
                share.meters.ahead.note(waiter.wait.seq, of: stream, in: waiter.wait.partition, error)
            }
            waiter.then(error)
        case .wait:
            let wait = waiter.wait
            seqWaiters.waiting[wait.partition].add(waiter, for: wait.seq, untilMs: wait.untilMs)
            endWaits(atMs: wait.untilMs)
        }
    }

    /// A deadline may pass so late, in milliseconds: waits that end at about the same time share a timer.
    private static let deadlineMs: Int64 = 50

    /// Sees to it that waits with this deadline end.
    private func endWaits(atMs untilMs: Int64) {
        let dueMs = max(nowMs + Self.deadlineMs, untilMs)
        if let timer = seqWaiters.timer {
            guard dueMs < timer.dueMs else { return }
            timer.cancel()
        }
        let cancel = loop.every(dueMs - nowMs) { [self] in endOverdueWaits() }
        seqWaiters.timer = (dueMs, cancel)
    }

    /// Calls back those that waited for what this loop has read.
    func endWaits(of partition: Int) {
        for waiter in seqWaiters.waiting[partition].reached(rings[partition].head) { waiter.then(nil) }
    }

    /// Steps the waits whose deadline has passed.
    private func endOverdueWaits() {
        seqWaiters.timer?.cancel()
        seqWaiters.timer = nil
        for partition in seqWaiters.waiting.indices {
            for var waiter in seqWaiters.waiting[partition].due(nowMs: nowMs) {
                step(waiter.wait.tick(head: rings[partition].head, nowMs: nowMs), waiter)
            }
        }
        if let nextMs = seqWaiters.waiting.compactMap(\.nextDeadlineMs).min() { endWaits(atMs: nextMs) }
    }
}
