import ReelCore
import ReelLog
import ReelNode

/// The requests that wait until a loop has read a seq. On its loop only.
final class SeqWaiters {
    private struct Waiter {
        var wait: SeqWaiter
        let request: ReadRequest
        /// Called with nil once the client may read, or with the reason why it may not.
        let then: (ServerFrame.Failure?) -> Void
    }

    private unowned let gateway: GatewayLoop
    /// For each partition the waiters that arrived while the log is asked for its end; nil: it is not being asked.
    private var asking: [[Waiter]?]
    /// For each partition the waiters for the loop, or the log, to reach their seq.
    private var waiting: [SeqWaits<Waiter>]
    /// The timer that ends waits at their deadlines, set for the earliest of them; nil: there are no waits.
    private var timer: (dueMs: Int64, timer: any HostTimer)?

    init(of gateway: GatewayLoop) {
        self.gateway = gateway
        asking = [[Waiter]?](repeating: nil, count: gateway.context.partitions)
        waiting = [SeqWaits<Waiter>](repeating: SeqWaits(), count: gateway.context.partitions)
    }

    /// Waits until this loop has read the highest seq of a request. On the loop.
    ///
    /// - Parameters:
    ///   - request: The request, of this epoch if it names one.
    ///   - then: Called with nil once the client may read, or with the reason why it may not. It may be called before
    ///     `reach` returns.
    func reach(_ request: ReadRequest, then: @escaping (ServerFrame.Failure?) -> Void) {
        let (settings, seq) = (gateway.context.settings, request.highest)
        let partition = request.stream.partition(of: gateway.context.partitions)
        let wait = SeqWaiter(
            partition: partition,
            seq: seq,
            behindMs: settings.behindMs,
            aheadMs: settings.aheadMs
        )
        let waiter = Waiter(wait: wait, request: request, then: then)
        guard seq > gateway.rings[partition].head else { return end(waiter) }
        if let error = gateway.health.stop(of: partition) { return end(waiter, error) }
        ask(waiter)
    }

    private func end(_ waiter: Waiter, _ error: ReelError? = nil) {
        waiter.then(gateway.refusal(of: waiter.request, after: error))
    }

    /// Asks the log for its end. Waiters that arrive while a query is running share one follow-up query, because the
    /// running one may predate them.
    private func ask(_ waiter: Waiter) {
        let partition = waiter.wait.partition
        guard asking[partition]?.append(waiter) == nil else { return }
        asking[partition] = []
        ask(for: [waiter], about: partition)
    }

    private func ask(for first: [Waiter], about partition: Int) {
        let log = gateway.context.log
        gateway.loop.offload {
            try? log.bounds(partition)
        } then: { [gateway] bounds in
            gateway.waits.answered(bounds, of: partition, to: first)
        }
    }

    private func answered(_ bounds: LogBounds?, of partition: Int, to first: [Waiter]) {
        if let bounds { gateway.health.logBegins(at: bounds.first, in: partition) }
        for waiter in first { resume(waiter, bounds) }
        let next = asking[partition] ?? []
        asking[partition] = next.isEmpty ? nil : []
        if !next.isEmpty { ask(for: next, about: partition) }
    }

    private func resume(_ waiter: Waiter, _ bounds: LogBounds?) {
        let wait = waiter.wait
        // During the query this waiter was in no list. So an end of the log or a stop of the partition has not reached
        // it.
        if let divergence = gateway.health.divergence { return end(waiter, divergence) }
        if wait.seq <= gateway.rings[wait.partition].head { return end(waiter) }
        if let error = gateway.health.stop(of: wait.partition) { return end(waiter, error) }
        var waiter = waiter
        step(waiter.wait.logEnds(at: bounds?.last, nowMs: gateway.nowMs), waiter)
    }

    private func step(_ step: SeqWaiter.Step, _ waiter: Waiter) {
        switch step {
        case .ask: ask(waiter)
        case .reached: end(waiter)
        case .refuse(let error):
            // The node will not reach the position: a record before it cannot be read.
            if error.code == .nodeBehind, let reason = gateway.health.standstill(of: waiter.wait.partition) {
                return end(waiter, reason)
            }
            // The client has named a seq of this epoch.
            if error.code == .aheadOfLog, waiter.request.epoch != nil {
                let (stream, wait) = (waiter.request.stream, waiter.wait)
                gateway.context.meters.ahead.note(wait.seq, of: stream, in: wait.partition, error)
            }
            end(waiter, error)
        case .wait:
            let wait = waiter.wait
            waiting[wait.partition].add(waiter, for: wait.seq, untilMs: wait.untilMs)
            endWaits(atMs: wait.untilMs)
        }
    }

    /// The maximum delay of a deadline, in milliseconds. Waits that end at about the same time share a timer.
    private static let deadlineDelayMs: Int64 = 50

    /// Makes sure that waits with this deadline end.
    private func endWaits(atMs untilMs: Int64) {
        let dueMs = max(gateway.nowMs + Self.deadlineDelayMs, untilMs)
        if let timer {
            guard dueMs < timer.dueMs else { return }
            timer.timer.cancel()
        }
        timer = (
            dueMs,
            gateway.loop.once(after: dueMs - gateway.nowMs) { [gateway] in
                gateway.waits.endOverdueWaits()
            }
        )
    }

    /// Ends the waits for a partition with an error, or those for all partitions if it is nil. While the log is being
    /// asked, its waiters are not in the list: they learn of the error with the answer.
    func fail(_ partition: Int?, _ error: ReelError) {
        let partitions = partition.map { $0..<$0 + 1 } ?? waiting.indices
        for waiter in partitions.flatMap({ waiting[$0].removeAll() }) { end(waiter, error) }
    }

    /// Calls back the waiters for seqs that this loop has read by now.
    func advance(_ partition: Int) {
        for waiter in waiting[partition].reached(gateway.rings[partition].head) { end(waiter) }
    }

    /// Advances the waits that have passed their deadline.
    private func endOverdueWaits() {
        timer = nil
        for partition in waiting.indices {
            for var waiter in waiting[partition].due(nowMs: gateway.nowMs) {
                step(waiter.wait.tick(head: gateway.rings[partition].head, nowMs: gateway.nowMs), waiter)
            }
        }
        if let nextMs = waiting.compactMap(\.nextDeadlineMs).min() { endWaits(atMs: nextMs) }
    }
}

@available(*, unavailable)
extension SeqWaiters: Sendable {}
