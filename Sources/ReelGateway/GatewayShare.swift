import ReelCore
import ReelLog
import ReelNode
import Synchronization

/// What the loops of a gateway share. Nothing of it is touched for each event.
final class GatewayShare: Sendable {
    private struct Standing {
        var readiness: Readiness
        var firsts: [Seq]
        var ledgers: [PublishLedger.LogState]
        var divergence: ReelError?
        /// For each partition the epoch that follows, once this one has ended there.
        var nexts: [Epoch?]
    }

    let nodeID: String
    let log: any EventLog
    let epoch: Epoch
    let partitions: Int
    let settings: GatewaySettings
    let journal: Journal
    let meters: GatewayMeters
    /// Answers questions about state in this process; nil: they are passed on.
    let state: (any StateSource)?
    private let standing: Mutex<Standing>

    /// For a log whose partitions have these ends now.
    init(
        nodeID: String,
        log: any EventLog,
        bounds: [LogBounds],
        settings: GatewaySettings,
        journal: Journal,
        metrics: Metrics,
        state: (any StateSource)?
    ) {
        self.nodeID = nodeID
        self.log = log
        self.settings = settings
        self.journal = journal
        self.state = state
        epoch = log.epoch
        partitions = log.partitions
        meters = GatewayMeters(metrics)
        standing = Mutex(
            Standing(
                readiness: Readiness(goals: bounds.map(\.last)),
                firsts: bounds.map(\.first),
                ledgers: [PublishLedger.LogState](repeating: .ok, count: settings.node.loops),
                nexts: [Epoch?](repeating: nil, count: log.partitions)
            )
        )
    }

    // MARK: Where the node stands

    /// Whether the node can serve, and the log's state in a word.
    var readiness: (readiness: Readiness, log: String) {
        standing.withLock { standing in
            guard standing.divergence == nil else { return (standing.readiness, "diverged") }
            guard standing.nexts.allSatisfy({ $0 == nil }) else { return (standing.readiness, "ended") }
            let worst = [PublishLedger.LogState.unavailable, .degraded].first { standing.ledgers.contains($0) }
            return (standing.readiness, (worst ?? .ok).rawValue)
        }
    }

    /// Why nothing is served any more: the log is not what was read before.
    var divergence: ReelError? { standing.withLock { $0.divergence } }

    /// The epoch that follows in a partition, once this one has ended there.
    func next(_ partition: Int) -> Epoch? { standing.withLock { $0.nexts[partition] } }

    /// Why nothing more can be published to a partition; nil: it can.
    func refusal(of partition: Int) -> ReelError? {
        standing.withLock { $0.divergence ?? $0.nexts[partition].map(ReelError.ended) }
    }

    /// The first seq of a partition that can be read; −1 if it is empty.
    func first(_ partition: Int) -> Seq { standing.withLock { $0.firsts[partition] } }

    /// A batch of the tail came.
    func read(_ batch: TailBatch) {
        meters.eventsRead.add(batch.items.count)
        let voids = batch.items.count { $0.kind == .void }
        if voids > 0 {
            meters.voids.add(voids)
            journal.warning("void records", ["partition": "\(batch.partition)", "to": "\(batch.last)"])
        }
        standing.withLock { standing in
            standing.readiness.read(batch.partition, to: batch.last)
            if let next = batch.next { standing.nexts[batch.partition] = next }
            if standing.firsts[batch.partition] < 0 { standing.firsts[batch.partition] = batch.seqs.lowerBound }
        }
    }

    /// The log was trimmed before it was read.
    func skipped(_ partition: Int, to first: Seq) {
        journal.warning("the log was trimmed before it was read", ["partition": "\(partition)", "first": "\(first)"])
        standing.withLock { standing in
            standing.readiness.read(partition, to: first - 1)
            standing.firsts[partition] = first
        }
    }

    /// What the node announces to the others.
    func announcement(role: String, url: String) -> NodeAnnouncement {
        NodeAnnouncement(
            id: nodeID,
            role: role,
            url: url,
            advertised: settings.node.advertise,
            build: settings.node.build,
            positions: readiness.readiness.positions.enumerated().map {
                NodeAnnouncement.Position(partition: $0.offset, seq: $0.element)
            },
            atMs: WallClock.nowMs()
        )
    }

    func bounds(_ partition: Int, are bounds: LogBounds) {
        standing.withLock { $0.firsts[partition] = bounds.first }
    }

    func ledger(ofLoop index: Int, is state: PublishLedger.LogState) {
        standing.withLock { $0.ledgers[index] = state }
    }

    func diverged(_ error: ReelError) {
        let isNew = standing.withLock { standing in
            guard standing.divergence == nil else { return false }
            standing.divergence = error
            return true
        }
        if isNew { journal.error("diverged", ["detail": error.message]) }
    }

    func leave() {
        standing.withLock { $0.readiness.isLeaving = true }
    }
}

extension ReelError {
    /// The log has ended; it goes on in another epoch.
    static func ended(_ next: Epoch) -> ReelError {
        ReelError(.epochChanged, "this log's epoch has ended, the next one is \(next)")
    }
}
