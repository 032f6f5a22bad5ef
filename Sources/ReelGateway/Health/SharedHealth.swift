import ReelCore
import ReelLog
import ReelNode
import Synchronization

/// The health of a gateway, for all its loops. Writes a log line for each change of the log's state. From any thread.
final class SharedHealth: Sendable {
    private let nodeID: String
    private let epoch: Epoch
    private let partitions: Int
    private let state: (any StateSource)?
    private let logger: Logger
    private let notices: @Sendable () -> [String?]
    private let unasked: Mutex<UnaskedPeers>
    private let health: Mutex<GatewayHealth>
    /// The functions to call once when the log has diverged, without the lock.
    private let divergenceListeners = Mutex<[@Sendable (ReelError) -> Void]>([])
    /// True if appends fail. It changes together with `GatewayHealth.failing`, and can be read without the lock.
    private let isFailing = Atomic<Bool>(false)

    /// Creates the shared health of a gateway.
    ///
    /// - Parameters:
    ///   - health: The health at the start.
    ///   - nodeID: The id under which this node announces itself.
    ///   - log: The log.
    ///   - state: The folded state in this process; nil: there is none.
    ///   - peers: The rule that says which nodes can be asked.
    ///   - logger: The logger for the operator.
    ///   - notice: Returns a problem that an operator must solve although the node serves; nil: there is none.
    init(
        _ health: GatewayHealth,
        nodeID: String,
        log: any EventLog,
        state: (any StateSource)?,
        peers: PeerAccess,
        logger: Logger,
        notice: @escaping @Sendable () -> String?
    ) {
        self.health = Mutex(health)
        self.nodeID = nodeID
        (epoch, partitions) = (log.epoch, log.partitions)
        self.state = state
        unasked = Mutex(UnaskedPeers(peers))
        self.logger = logger
        notices = { [log.notice, notice()] }
    }

    // MARK: Questions

    /// The health of the node: the worst of its roles.
    var node: NodeHealth {
        let (own, isLeaving) = health.withLock { ($0.role, $0.isLeaving) }
        return NodeHealth(
            [own] + (state.map { [$0.health] } ?? []),
            isLeaving: isLeaving,
            notices: notices() + [unasked.withLock(\.notice)]
        )
    }

    /// The state of the log.
    var logState: LogState { health.withLock { $0.log } }

    /// How long the other gateways have read on without this one, in milliseconds.
    var lagMs: Int64 { health.withLock { $0.lag.ms } }

    /// The publish backlog of all loops.
    var backlog: Backlog { health.withLock { $0.backlog } }

    /// True if the node is about to end.
    var isLeaving: Bool { health.withLock { $0.isLeaving } }

    /// The error for clients once the log is not what was read before; nil: it is.
    var divergence: ReelError? { health.withLock { $0.divergence }?.forClients }

    /// Returns the end of the epoch in a partition; nil: it has not ended there.
    func end(of partition: Int) -> EpochEnd? { health.withLock { $0.ends[partition] } }

    /// Returns the reason why nothing more can be published to a partition; nil: it can.
    func refusal(of partition: Int) -> ReelError? {
        health.withLock { $0.refusal(of: partition) } ?? state?.loss(of: partition)
    }

    /// Returns the error for clients if a partition is not read any further; nil: it is.
    func stop(of partition: Int) -> ReelError? { health.withLock { $0.stop(of: partition) } }

    /// Returns the reason why the gateway cannot read further in a partition: reading has stopped for good, or met a
    /// damaged record. Returns nil if the gateway reads on.
    func standstill(of partition: Int) -> ReelError? { health.withLock { $0.standstill(of: partition) } }

    /// Returns the last seq that a partition held when the node started; −1: none.
    func goal(of partition: Int) -> Seq { health.withLock { $0.progress.goals[partition] } }

    /// Returns the last seq that was read of a partition; −1: none.
    func seq(of partition: Int) -> Seq { health.withLock { $0.progress.positions[partition] } }

    /// Returns the first seq of a partition that can be read; −1 if the partition is empty. Seeds cannot be read: their
    /// content is in a snapshot.
    func first(of partition: Int) -> Seq { health.withLock { $0.first(partition) } }

    /// The last seq of each partition: as the log reported it last, or as it was read since.
    var lastSeqs: [Seq] { health.withLock { health in zip(health.lasts, health.progress.positions).map(max) } }

    // MARK: Reading

    /// Called with each batch of the tail, on a thread of the log.
    func read(_ batch: TailBatch) {
        if let end = batch.end, end.seq >= batch.seqs.lowerBound {
            logger.warning(
                "the epoch has ended",
                ["partition": "\(batch.partition)", "seq": "\(end.seq)", "next": "\(end.next)"]
            )
            change { $0.ends[batch.partition] = end }
        }
        if health.withLock({ $0.read(batch) }) { reading(batch.partition, fails: nil) }
    }

    /// Called when the log was trimmed before it was read. Reading continues at `first`.
    func skipped(_ partition: Int, to first: Seq) {
        logger.warning("the log was trimmed before it was read", ["partition": "\(partition)", "first": "\(first)"])
        health.withLock { $0.skip(partition, to: first) }
    }

    /// Called when a partition is not read any further, because it contains something that this version does not know.
    func stopped(_ partition: Int, _ error: ReelError) {
        health.withLock { $0.progress.stop(partition, PartitionHealth.Stop(error.code, error.message)) }
    }

    /// Called when the log does not let a partition be read at present; `error` is nil once it does again.
    func reading(_ partition: Int, fails error: ReelError?) {
        change { $0.losses[partition] = error }
    }

    // MARK: The log's reports

    /// Called when the log reports the last seq of a partition.
    func logEnds(at last: Seq, in partition: Int) {
        health.withLock { $0.lasts[partition] = last }
    }

    /// Called when the log reports the first seq of a partition.
    func logBegins(at first: Seq, in partition: Int) {
        health.withLock { $0.firsts[partition] = first }
    }

    /// Called when the log does not report where a partition ends; `error` is nil once it does again.
    func silence(_ partition: Int, is error: ReelError?) {
        change { $0.silences[partition] = error }
    }

    /// Called when an append failed although its records were right. The log counts as degraded until an append
    /// succeeds.
    func appending(fails error: LogError, nowMs: Int64) {
        change { health in
            let reason = ReelError(error.code, error.message)
            health.failing = .init(error: reason, fromMs: health.failing?.fromMs ?? nowMs, toMs: nowMs)
            isFailing.store(true, ordering: .relaxed)
        }
    }

    /// Called when an append to any partition succeeded.
    func appended() {
        guard isFailing.load(ordering: .relaxed) else { return }
        change { health in
            health.failing = nil
            isFailing.store(false, ordering: .relaxed)
        }
    }

    /// Called with the present publish backlog of a loop.
    func backlog(ofLoop index: Int, is backlog: Backlog) {
        change { $0.backlogs[index] = backlog }
    }

    /// Called when the log is not what was read before. Tells all loops, without the lock; later calls have no effect.
    func diverged(_ error: ReelError) {
        let isFirst = change { health in
            guard health.divergence == nil else { return false }
            health.divergence = error
            return true
        }
        guard isFirst else { return }
        for tell in divergenceListeners.withLock({ $0 }) { tell(error.forClients) }
    }

    /// Sets a function to call once the log is not what was read before. It is called without the lock, on any thread.
    func onDivergence(_ tell: @escaping @Sendable (ReelError) -> Void) {
        divergenceListeners.withLock { $0.append(tell) }
    }

    // MARK: The other nodes

    /// Compares this gateway with the others by their announcements, and reports nodes that cannot be asked. Called
    /// about once a second.
    func look(at nodes: [NodeAnnouncement], nowMs: Int64) {
        for (node, detail) in unasked.withLock({ $0.look(at: nodes.filter { $0.id != nodeID }) }) {
            logger.warning("a snapshot node is not asked", ["node": node, "detail": detail])
        }
        var others = [Seq](repeating: .none, count: partitions)
        for node in nodes where node.id != nodeID && node.role != "snapshot" {
            for position in node.positions(in: epoch) where others.indices.contains(position.partition) {
                others[position.partition] = max(others[position.partition], position.seq)
            }
        }
        change { [others] health in
            health.announcing?.look(nowMs: nowMs)
            health.lag.look(read: health.progress.positions, others: others, nowMs: nowMs)
        }
    }

    /// Called when the node's announcement was written to the log, or failed.
    func announced(_ result: Result<Void, LogError>, nowMs: Int64) {
        var failure: ReelError?
        if case .failure(let error) = result { failure = ReelError(error.code, error.message) }
        change { [failure] in $0.announcing?.ended(with: failure, nowMs: nowMs) }
    }

    /// Called when another node has reported a loss of a partition and the log has confirmed it. `loss` is nil once no
    /// node reports it any more.
    func witnessed(_ partition: Int, loss: ReelError?) {
        change { $0.witnessed[partition] = loss }
    }

    /// Marks the node as about to end.
    func leave() {
        health.withLock { $0.isLeaving = true }
    }

    /// Changes the health under its lock. If that changes the log's state, writes a log line without the lock.
    private func change<R: Sendable>(_ body: (inout GatewayHealth) -> R) -> R {
        let (before, after, result) = health.withLock { health in
            let before = health.log
            let result = body(&health)
            return (before, (state: health.log, detail: health.log == before ? nil : health.detail), result)
        }
        guard before != after.state else { return result }
        let fields: KeyValuePairs = [
            "state": after.state.rawValue, "before": before.rawValue, "detail": after.detail ?? "",
        ]
        switch after.state {
        case .ok: logger.info("log state changed", fields)
        case .degraded, .truncated, .ended: logger.warning("log state changed", fields)
        case .unavailable, .aheadOfLog, .diverged: logger.error("log state changed", fields)
        }
        return result
    }
}
