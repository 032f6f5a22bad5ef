import ReelCore
import ReelLog
import ReelNode
import Synchronization

/// The state that the loops of a gateway share. No part of it is accessed once per event. From any thread.
final class GatewayShare: Sendable {
    let nodeID: String
    let log: any EventLog
    let epoch: Epoch
    /// The number of logs that were the current one before this one.
    let number: Int
    let deployment: Deployment
    let partitions: Int
    let settings: GatewaySettings
    let logger: Logger
    let meters: GatewayMeters
    let gate: NodeGate
    let publishLimits: Mutex<PublishLimits>
    /// The subscriptions of each payer, counted on all loops.
    let payerSubscriptions: PayerShares
    /// The sockets, event streams and long polls of each token subject, counted on all loops.
    private let subjectConnections: PayerShares
    /// Answers questions about state in this process; nil: the gateway forwards them to a snapshot node.
    let state: (any StateSource)?
    private let notice: @Sendable () -> String?
    private let unasked: Mutex<UnaskedPeers>
    /// The ranges of the log in which all records are known to be valid.
    let sound: ValidatedRanges
    /// The cache of log pages for clients that catch up.
    let pages: PageCache
    private let standing: Mutex<GatewayHealth>
    /// The functions to call once when the log has diverged, without the lock.
    private let divergenceListeners = Mutex<[@Sendable (ReelError) -> Void]>([])
    /// True if appends fail. It changes together with `standing.failing`, and can be read without the lock.
    private let isFailing = Atomic<Bool>(false)

    /// Creates the state of a gateway for a log. `bounds` and `starts` have an entry for each partition: its present
    /// bounds, and the place from which on it is read.
    init(
        nodeID: String,
        log: any EventLog,
        number: Int,
        deployment: Deployment? = nil,
        bounds: [LogBounds],
        starts: [WarmStart],
        settings: GatewaySettings,
        logger: Logger,
        metrics: Metrics,
        state: (any StateSource)?,
        notice: @escaping @Sendable () -> String? = { nil }
    ) {
        self.notice = notice
        unasked = Mutex(UnaskedPeers(PeerAccess(settings.node)))
        self.nodeID = nodeID
        self.log = log
        self.settings = settings
        self.logger = logger
        self.state = state
        epoch = log.epoch
        self.number = number
        self.deployment = deployment ?? Deployment(beginningWith: log.epoch)
        partitions = log.partitions
        publishLimits = Mutex(PublishLimits(settings))
        payerSubscriptions = PayerShares(settings.payerSubscriptions)
        subjectConnections = PayerShares(
            PayerLimit(settings.subjectConnections ?? settings.node.standardShareOfConnections)
        )
        gate = NodeGate(settings.node, metrics: metrics, logger: logger)
        sound = ValidatedRanges(partitions: log.partitions)
        pages = PageCache(log, sound: sound, byteLimit: settings.pageBytes)
        meters = GatewayMeters(metrics, epoch: log.epoch, logger: logger)
        standing = Mutex(GatewayHealth(of: log, bounds: bounds, starts: starts, settings))
        GatewayMeters.watch(self, metrics)
    }

    /// Counts a socket, an event stream or a long poll for the subject of its token until the unit is released. Returns
    /// nil for a client without a token: the node's gate counts its connections by address. Throws `overloaded` if the
    /// subject has reached its limit.
    func countConnection(of access: Access) throws(ReelError) -> PayerShares.Unit? {
        guard let subject = access.subject else { return nil }
        if let unit = subjectConnections.unit(for: .subject(subject)) { return unit }
        meters.limits.met(.connectionsPerSubject)
        throw ReelError(
            .overloaded,
            "found \(subjectConnections.limit.most) open connections of this token's subject, expected fewer",
            retryMs: 5_000
        )
    }

    // MARK: State of the node

    /// The health of the node: the worst of its roles.
    var health: NodeHealth {
        let (own, isLeaving) = standing.withLock { ($0.role, $0.isLeaving) }
        return NodeHealth(
            [own] + (state.map { [$0.health] } ?? []),
            isLeaving: isLeaving,
            notices: [log.notice, notice(), unasked.withLock(\.notice)]
        )
    }

    /// The state of the log.
    var logState: LogState { standing.withLock { $0.log } }

    /// How long the other gateways have read on without this one, in milliseconds.
    var lagMs: Int64 { standing.withLock { $0.lag.ms } }

    /// The publish backlog of all loops.
    var backlog: Backlog { standing.withLock { $0.backlog } }

    /// The error for clients once the log is not what was read before; nil: it is.
    var divergence: ReelError? { standing.withLock { $0.divergence }?.forClients }

    /// Returns the epoch that follows in a partition; nil: this one has not ended there.
    func next(_ partition: Int) -> Epoch? { end(partition)?.next }

    /// Returns where the epoch has ended in a partition; nil: it has not.
    func end(_ partition: Int) -> EpochEnd? { standing.withLock { $0.ends[partition] } }

    /// Returns the reason why nothing more can be published to a partition; nil: it can.
    func refusal(of partition: Int) -> ReelError? {
        standing.withLock { $0.refusal(of: partition) } ?? state?.loss(of: partition)
    }

    /// Returns the error for clients if a partition is not read any further; nil: it is.
    func stop(of partition: Int) -> ReelError? { standing.withLock { $0.stop(of: partition) } }

    /// Returns the reason why the gateway cannot read further in a partition: reading has stopped for good, or met a
    /// damaged record. Returns nil if the gateway reads on.
    func standstill(of partition: Int) -> ReelError? { standing.withLock { $0.standstill(of: partition) } }

    /// Returns the last seq that a partition held when the node started; −1: none.
    func goal(_ partition: Int) -> Seq { standing.withLock { $0.progress.goals[partition] } }

    /// Returns the last seq that was read of a partition; −1: none.
    func seq(_ partition: Int) -> Seq { standing.withLock { $0.progress.positions[partition] } }

    /// Returns the first seq of a partition that can be read; −1 if the partition is empty. Seeds cannot be read: their
    /// content is in a snapshot.
    func first(_ partition: Int) -> Seq { standing.withLock { $0.first(partition) } }

    /// Called with each batch of the tail, on a thread of the log.
    func read(_ batch: TailBatch) {
        meters.eventsRead.add(batch.kinds.count)
        if !batch.voids.isEmpty {
            meters.voids.note(batch.voids, in: batch.partition)
        } else if batch.seedsEnd == nil {
            sound.add(batch.seqs, of: batch.partition)
        }
        if let end = batch.end, end.seq >= batch.seqs.lowerBound {
            logger.warning(
                "the epoch has ended",
                ["partition": "\(batch.partition)", "seq": "\(end.seq)", "next": "\(end.next)"]
            )
            change { $0.ends[batch.partition] = end }
        }
        if standing.withLock({ $0.read(batch) }) { reading(batch.partition, fails: nil) }
    }

    /// Called when the log was trimmed before it was read. Reading continues at `first`.
    func skipped(_ partition: Int, to first: Seq) {
        meters.trimsSkipped.add()
        logger.warning("the log was trimmed before it was read", ["partition": "\(partition)", "first": "\(first)"])
        standing.withLock { $0.skip(partition, to: first) }
    }

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
        change { [others] standing in
            standing.announcing?.look(nowMs: nowMs)
            standing.lag.look(read: standing.progress.positions, others: others, nowMs: nowMs)
        }
    }

    /// The last seq of each partition: as the log reported it last, or as it was read since.
    var ends: [Seq] { standing.withLock { standing in zip(standing.lasts, standing.progress.positions).map(max) } }

    /// Called when the log reports where a partition ends.
    func end(_ partition: Int, is last: Seq) {
        standing.withLock { $0.lasts[partition] = last }
    }

    /// Called when the log reports the bounds of a partition. Keeps the first seq.
    func bounds(_ partition: Int, are bounds: LogBounds) {
        standing.withLock { $0.firsts[partition] = bounds.first }
    }

    /// Called with the present publish backlog of a loop.
    func backlog(ofLoop index: Int, is backlog: Backlog) {
        change { $0.backlogs[index] = backlog }
    }

    /// Called when a partition is not read any further, because it contains something that this version does not know.
    func stopped(_ partition: Int, _ error: ReelError) {
        standing.withLock { $0.progress.stop(partition, PartitionHealth.Stop(error.code, error.message)) }
    }

    /// Called when the log does not let a partition be read at present; `error` is nil once it does again.
    func reading(_ partition: Int, fails error: ReelError?) {
        change { $0.losses[partition] = error }
    }

    /// Called when the log does not report where a partition ends; `error` is nil once it does again.
    func silence(_ partition: Int, is error: ReelError?) {
        change { $0.silences[partition] = error }
    }

    /// Called when the node's announcement was written to the log, or failed.
    func announced(_ result: Result<Void, LogError>, nowMs: Int64) {
        var failure: ReelError?
        if case .failure(let error) = result { failure = ReelError(error.code, error.message) }
        change { [failure] in $0.announcing?.ended(with: failure, nowMs: nowMs) }
    }

    /// Called when an append failed although its records were right. The log counts as degraded until an append
    /// succeeds.
    func appending(fails error: LogError, nowMs: Int64) {
        change { standing in
            let reason = ReelError(error.code, error.message)
            standing.failing = .init(error: reason, fromMs: standing.failing?.fromMs ?? nowMs, toMs: nowMs)
            isFailing.store(true, ordering: .relaxed)
        }
    }

    /// Called when an append to any partition succeeded.
    func appended() {
        guard isFailing.load(ordering: .relaxed) else { return }
        change { standing in
            standing.failing = nil
            isFailing.store(false, ordering: .relaxed)
        }
    }

    /// Called when another node has reported a loss of a partition and the log has confirmed it. `loss` is nil once no
    /// node reports it any more.
    func witnessed(_ partition: Int, loss: ReelError?) {
        change { $0.witnessed[partition] = loss }
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

    /// Changes the health under its lock. If that changes the log's state, writes a log line without the lock.
    private func change<R: Sendable>(_ body: (inout GatewayHealth) -> R) -> R {
        let (before, after, detail, result) = standing.withLock { standing in
            let before = standing.log
            let result = body(&standing)
            return (before, standing.log, standing.detail, result)
        }
        guard before != after else { return result }
        let fields: KeyValuePairs = ["state": after.rawValue, "before": before.rawValue, "detail": detail ?? ""]
        switch after {
        case .ok: logger.info("log state changed", fields)
        case .degraded, .truncated, .ended: logger.warning("log state changed", fields)
        case .unavailable, .aheadOfLog, .diverged: logger.error("log state changed", fields)
        }
        return result
    }

    /// True if the node is about to end.
    var isLeaving: Bool { standing.withLock { $0.isLeaving } }

    /// Marks the node as about to end.
    func leave() {
        standing.withLock { $0.isLeaving = true }
    }
}
