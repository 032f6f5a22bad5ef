import ReelCore
import ReelLog
import ReelNode
import Synchronization

/// What the loops of a gateway share. Nothing of it is touched for each event.
final class GatewayShare: Sendable {
    private struct Standing {
        var progress: ReadProgress
        var isLeaving = false
        var lag: Lag
        var firsts: [Seq]
        /// The last seq of each partition, as the log said it last.
        var lasts: [Seq]
        /// What each loop waits for.
        var backlogs: [Backlog]
        var divergence: ReelError?
        /// For each partition why the log does not let it be read at present.
        var losses: [ReelError?]
        /// For each partition why the log does not say where it ends; nil: it does.
        var silences: [ReelError?]
        /// Why appends fail; nil: the last one went well.
        var failing: LogState.Failing?
        /// How the node's own announcements in the log do; nil: they are kept elsewhere, and say nothing of it.
        var announcing: LogState.Announcing?
        /// For each partition what the log has lost of it, as another node witnessed and the log confirmed.
        var witnessed: [ReelError?]
        /// For each partition where the epoch has ended.
        var ends: [EpochEnd?]
        /// For each partition the seq behind the seeds that it begins with; 0: it has none.
        var seedsEnds: [Seq]
        var onDivergence: [@Sendable (ReelError) -> Void] = []

        let settings: GatewaySettings

        var backlog: Backlog { backlogs.reduce(Backlog()) { $0 + $1 } }

        /// What more there is to say of the log's state.
        var detail: String? {
            let refusal = failing?.error ?? announcing?.refusal(settings)
            if let failure = divergence ?? witnessed.lazy.compactMap(\.self).first ?? loss ?? refusal {
                return "\(failure.code.rawValue): \(failure.message)"
            }
            return log == .ok || log == .ended ? nil : "the oldest publish has waited for \(backlog.waitedMs) ms"
        }

        /// Why some partition cannot be read or written at present. A right holds for all partitions alike.
        var loss: ReelError? {
            losses.lazy.compactMap(\.self).first ?? silences.lazy.compactMap(\.self).first
                ?? (failing?.error.code == .forbidden ? failing?.error : nil)
        }

        /// Why a partition is not read any further.
        func stop(of partition: Int) -> ReelError? {
            // Another node, or this one in a newer version, goes on: what was sent is not to be given up.
            progress.stop(of: partition).map { ReelError($0.code, $0.reason, retryMs: 10_000) }
        }

        /// Why the gateway cannot read on in a partition: reading has stopped for good, or met a damaged record.
        func standstill(of partition: Int) -> ReelError? {
            stop(of: partition) ?? losses[partition].flatMap { $0.code == .damaged ? $0.forClients : nil }
        }

        /// How the gateway stands in each partition.
        var health: RoleHealth {
            let trouble = divergence.map { PartitionHealth.Stop($0.code, $0.message) }
            return RoleHealth(
                .gateway,
                log: log,
                detail: detail,
                isBehind: lag.isTooLong,
                partitions: losses.indices.map { partition in
                    let loss = (losses[partition] ?? silences[partition]).map {
                        PartitionHealth.Stop($0.code, $0.message)
                    }
                    return progress.health(of: partition, trouble: trouble ?? loss)
                }
            )
        }

        var log: LogState {
            switch (divergence ?? witnessed.lazy.compactMap(\.self).first)?.code {
            case nil where ends.contains { $0 != nil }: .ended
            case nil where loss != nil: .unavailable
            case nil:
                max(
                    LogState(waitedMs: max(backlog.waitedMs, announcing?.overdueMs ?? 0), settings),
                    failing?.state(settings) ?? .ok
                )
            case .epochChanged: .ended
            case .aheadOfLog: .aheadOfLog
            default: .diverged
            }
        }
    }

    let nodeID: String
    let log: any EventLog
    let epoch: Epoch
    /// How many logs were the current one before this one.
    let number: Int
    let deployment: Deployment
    let partitions: Int
    let settings: GatewaySettings
    let logger: Logger
    let meters: GatewayMeters
    let gate: NodeGate
    let publishLimits: Mutex<PublishLimits>
    /// The subscriptions of each payer, on all loops.
    let payerSubscriptions: PayerShares
    /// The sockets, event streams and long polls of each token subject, on all loops.
    private let subjectConnections: PayerShares
    /// Answers questions about state in this process; nil: they are passed on.
    let state: (any StateSource)?
    private let notice: @Sendable () -> String?
    private let unasked: Mutex<UnaskedPeers>
    /// What is known of the log's records.
    let sound: ValidatedRanges
    /// What is read of the log for those who catch up.
    let pages: PageCache
    private let standing: Mutex<Standing>
    /// Whether appends fail, as `standing` says; changes with it.
    private let isFailing = Atomic<Bool>(false)

    /// For the log of this number, whose partitions have these ends now, and are read from these starts on.
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
        var progress = ReadProgress(goals: bounds.map(\.last))
        // What lies before a start is not read: of a partition that was trimmed up to its end that is all.
        for (partition, start) in starts.enumerated() { progress.read(partition, to: start.from - 1) }
        standing = Mutex(
            Standing(
                progress: progress,
                lag: Lag(partitions: log.partitions, limitMs: settings.peerLagMsMax),
                firsts: bounds.map(\.first),
                lasts: bounds.map(\.last),
                backlogs: [Backlog](repeating: Backlog(), count: settings.node.loops),
                losses: [ReelError?](repeating: nil, count: log.partitions),
                silences: [ReelError?](repeating: nil, count: log.partitions),
                announcing: log.keepsAnnouncements ? .init(everyMs: settings.node.announceMs) : nil,
                witnessed: [ReelError?](repeating: nil, count: log.partitions),
                ends: [EpochEnd?](repeating: nil, count: log.partitions),
                seedsEnds: starts.map { $0.hasSeeds ? 1 : 0 },
                settings: settings
            )
        )
        GatewayMeters.watch(self, metrics)
    }

    /// Counts a socket, an event stream or a long poll for the subject of its token until the unit is gone. Returns nil
    /// for a client without a token, whose connections the node's gate counts by address. Throws `overloaded` if the
    /// subject has as many as it may have.
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

    // MARK: Where the node stands

    /// How the node does: the worst of its roles.
    var health: NodeHealth {
        let (own, isLeaving) = standing.withLock { ($0.health, $0.isLeaving) }
        return NodeHealth(
            [own] + (state.map { [$0.health] } ?? []),
            isLeaving: isLeaving,
            notices: [log.notice, notice(), unasked.withLock(\.notice)]
        )
    }

    /// How the log does.
    var logState: LogState { standing.withLock { $0.log } }

    /// For how long the other gateways have read on without this one.
    var lagMs: Int64 { standing.withLock { $0.lag.ms } }

    /// What all loops wait for.
    var backlog: Backlog { standing.withLock { $0.backlog } }

    /// Why nothing is served any more: the log is not what was read before.
    var divergence: ReelError? { standing.withLock { $0.divergence }?.forClients }

    /// The epoch that follows in a partition, once this one has ended there.
    func next(_ partition: Int) -> Epoch? { end(partition)?.next }

    /// Where the epoch has ended in a partition; nil: it goes on.
    func end(_ partition: Int) -> EpochEnd? { standing.withLock { $0.ends[partition] } }

    /// Why nothing more can be published to a partition; nil: it can.
    func refusal(of partition: Int) -> ReelError? {
        let refusal = standing.withLock {
            // What cannot be read back is never acknowledged.
            ($0.divergence ?? $0.witnessed[partition])?.forClients ?? $0.standstill(of: partition)
                ?? $0.ends[partition].map { ReelError.ended($0.next) }
        }
        return refusal ?? state?.loss(of: partition)
    }

    /// Why a partition is not read any further; nil: it is.
    func stop(of partition: Int) -> ReelError? { standing.withLock { $0.stop(of: partition) } }

    /// Why the gateway cannot read on in a partition: reading has stopped for good, or met a damaged record. Nil: it
    /// reads on.
    func standstill(of partition: Int) -> ReelError? { standing.withLock { $0.standstill(of: partition) } }

    /// The last seq that a partition held when the node started; −1: none.
    func goal(_ partition: Int) -> Seq { standing.withLock { $0.progress.goals[partition] } }

    /// The last seq that was read of a partition; −1: none.
    func seq(_ partition: Int) -> Seq { standing.withLock { $0.progress.positions[partition] } }

    /// The first seq of a partition that can be read; −1 if it is empty. Seeds cannot: what they say is in a snapshot.
    func first(_ partition: Int) -> Seq {
        standing.withLock { $0.firsts[partition] < 0 ? .none : max($0.firsts[partition], $0.seedsEnds[partition]) }
    }

    /// A batch of the tail came.
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
        let wasLost = standing.withLock { standing in
            standing.progress.read(batch.partition, to: batch.last)
            if let seedsEnd = batch.seedsEnd { standing.seedsEnds[batch.partition] = seedsEnd }
            if standing.firsts[batch.partition] < 0 { standing.firsts[batch.partition] = batch.seqs.lowerBound }
            return standing.losses[batch.partition] != nil
        }
        if wasLost { reading(batch.partition, fails: nil) }
    }

    /// The log was trimmed before it was read.
    func skipped(_ partition: Int, to first: Seq) {
        meters.trimsSkipped.add()
        logger.warning("the log was trimmed before it was read", ["partition": "\(partition)", "first": "\(first)"])
        standing.withLock { standing in
            standing.progress.skip(partition, to: first)
            standing.firsts[partition] = first
        }
    }

    /// What the node announces to the others.
    func announcement(url: String) -> NodeAnnouncement {
        var node = NodeAnnouncement(
            id: nodeID,
            role: state == nil ? "gateway" : "serve",
            url: url,
            advertised: settings.node.advertise,
            build: settings.node.build,
            epoch: epoch,
            atMs: WallClock.nowMs()
        )
        node.take(health)
        return node
    }

    /// Looks how far the other gateways are, of what is known of the nodes, and which nodes cannot be asked; about once
    /// a second.
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

    /// The last seq of each partition: as the log said it last, or as it was read since.
    var ends: [Seq] { standing.withLock { standing in zip(standing.lasts, standing.progress.positions).map(max) } }

    /// The log says where a partition ends.
    func end(_ partition: Int, is last: Seq) {
        standing.withLock { $0.lasts[partition] = last }
    }

    func bounds(_ partition: Int, are bounds: LogBounds) {
        standing.withLock { $0.firsts[partition] = bounds.first }
    }

    /// What a loop waits for at this moment.
    func backlog(ofLoop index: Int, is backlog: Backlog) {
        change { $0.backlogs[index] = backlog }
    }

    /// A partition is not read any further: it holds what this version does not know.
    func stopped(_ partition: Int, _ error: ReelError) {
        standing.withLock { $0.progress.stop(partition, PartitionHealth.Stop(error.code, error.message)) }
    }

    /// The log does not let a partition be read at present; nil: it does again.
    func reading(_ partition: Int, fails error: ReelError?) {
        change { $0.losses[partition] = error }
    }

    /// The log does not say where a partition ends; nil: it does.
    func silence(_ partition: Int, is error: ReelError?) {
        change { $0.silences[partition] = error }
    }

    /// The node's announcement was written to the log, or failed.
    func announced(_ result: Result<Void, LogError>, nowMs: Int64) {
        var failure: ReelError?
        if case .failure(let error) = result { failure = ReelError(error.code, error.message) }
        change { [failure] in $0.announcing?.ended(with: failure, nowMs: nowMs) }
    }

    /// An append failed, though nothing was wrong with its records. The log counts as degraded until one goes well.
    func appending(fails error: LogError, nowMs: Int64) {
        change { standing in
            let reason = ReelError(error.code, error.message)
            standing.failing = .init(error: reason, fromMs: standing.failing?.fromMs ?? nowMs, toMs: nowMs)
            isFailing.store(true, ordering: .relaxed)
        }
    }

    /// Some partition was written.
    func appended() {
        guard isFailing.load(ordering: .relaxed) else { return }
        change { standing in
            standing.failing = nil
            isFailing.store(false, ordering: .relaxed)
        }
    }

    /// The log has lost what another node has processed of a partition, as it confirmed; nil: no node says so any more.
    func witnessed(_ partition: Int, loss: ReelError?) {
        change { $0.witnessed[partition] = loss }
    }

    /// The log is not what was read before. All loops are told.
    func diverged(_ error: ReelError) {
        let listeners = change { (standing) -> [@Sendable (ReelError) -> Void] in
            guard standing.divergence == nil else { return [] }
            standing.divergence = error
            return standing.onDivergence
        }
        for tell in listeners { tell(error.forClients) }
    }

    /// Calls back once the log is not what was read before.
    func onDivergence(_ tell: @escaping @Sendable (ReelError) -> Void) {
        standing.withLock { $0.onDivergence.append(tell) }
    }

    /// Changes where the node stands; the journal hears of another state of the log.
    private func change<R: Sendable>(_ body: (inout Standing) -> R) -> R {
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

    /// Whether the node is about to end.
    var isLeaving: Bool { standing.withLock { $0.isLeaving } }

    func leave() {
        standing.withLock { $0.isLeaving = true }
    }
}

extension ReelError {
    /// The same error of the log with the sentence for clients.
    var forClients: ReelError {
        var error = self
        error.message = LogError(code, message).publicMessage
        return error
    }

    /// Who asks was somebody, and is nobody any more.
    static let tokenExpired = ReelError(.unauthorized, "the token has expired")

    /// The log has ended; it goes on in another epoch.
    static func ended(_ next: Epoch) -> ReelError {
        ReelError(.epochChanged, "this log's epoch has ended, the next one is \(next)")
    }
}
