import ReelCore
import ReelLog
import ReelNode

/// The health of a gateway: how far it has read, and what keeps it from reading or writing. It has no lock and no
/// clock; `SharedHealth` keeps it for all loops.
struct GatewayHealth {
    var progress: ReadProgress
    var isLeaving = false
    var lag: Lag
    /// The first seq of each partition, as the log reported it last; −1: the partition is empty.
    var firsts: [Seq]
    /// The last seq of each partition, as the log reported it last.
    var lasts: [Seq]
    /// The publish backlog of each loop.
    var backlogs: [Backlog]
    /// The reason why the log counts as diverged; nil: it does not.
    var divergence: ReelError?
    /// For each partition the reason why it cannot be read at present; nil: it can.
    var losses: [ReelError?]
    /// For each partition the reason why the log does not report its end; nil: it does.
    var silences: [ReelError?]
    /// The reason why appends fail; nil: the last append succeeded.
    var failing: LogState.Failing?
    /// The state of the node's own announcements in the log; nil: they are kept elsewhere and say nothing about the
    /// log.
    var announcing: LogState.Announcing?
    /// For each partition the loss that another node has reported and the log has confirmed; nil: there is none.
    var witnessed: [ReelError?]
    /// For each partition the end of the epoch; nil: the epoch has not ended there.
    var ends: [EpochEnd?]
    /// For each partition the seq after its seeds; 0: it has none.
    var seedsEnds: [Seq]

    private let settings: GatewaySettings

    /// Creates the health of a gateway that starts. `bounds` and `starts` have an entry for each partition: its present
    /// bounds, and the place from which on it is read.
    init(of log: any EventLog, bounds: [LogBounds], starts: [WarmStart], _ settings: GatewaySettings) {
        progress = ReadProgress(goals: bounds.map(\.last))
        lag = Lag(partitions: log.partitions, limitMs: settings.peerLagMsMax)
        firsts = bounds.map(\.first)
        lasts = bounds.map(\.last)
        backlogs = [Backlog](repeating: Backlog(), count: settings.node.loops)
        losses = [ReelError?](repeating: nil, count: log.partitions)
        silences = [ReelError?](repeating: nil, count: log.partitions)
        announcing = log.keepsAnnouncements ? .init(everyMs: settings.node.announceMs) : nil
        witnessed = [ReelError?](repeating: nil, count: log.partitions)
        ends = [EpochEnd?](repeating: nil, count: log.partitions)
        seedsEnds = starts.map { $0.hasSeeds ? 1 : 0 }
        self.settings = settings
        // Records before a start are not read. If a partition was trimmed up to its end, no others exist.
        for (partition, start) in starts.enumerated() { progress.read(partition, to: start.from - 1) }
    }

    /// The publish backlog of all loops.
    var backlog: Backlog { backlogs.reduce(Backlog()) { $0 + $1 } }

    /// The reason for the log's state, for the operator; nil: there is nothing to add.
    var detail: String? {
        let refusal = failing?.error ?? announcing?.refusal(settings)
        if let failure = divergence ?? witnessed.lazy.compactMap(\.self).first ?? loss ?? refusal {
            return "\(failure.code.rawValue): \(failure.message)"
        }
        return log == .ok || log == .ended ? nil : "the oldest publish has waited for \(backlog.waitedMs) ms"
    }

    /// The reason why some partition cannot be read or written at present. A right to write holds for all
    /// partitions alike.
    var loss: ReelError? {
        losses.lazy.compactMap(\.self).first ?? silences.lazy.compactMap(\.self).first
            ?? (failing?.error.code == .forbidden ? failing?.error : nil)
    }

    /// The error for clients if a partition is not read any further; nil: it is.
    func stop(of partition: Int) -> ReelError? {
        // Another node, or a newer version of this one, can read on. So clients keep their events and try again
        // later.
        progress.stop(of: partition).map { ReelError($0.code, $0.reason, retryMs: 10_000) }
    }

    /// The reason why the gateway cannot read further in a partition: reading has stopped for good, or met a
    /// damaged record.
    func standstill(of partition: Int) -> ReelError? {
        stop(of: partition) ?? losses[partition].flatMap { $0.code == .damaged ? $0.forClients : nil }
    }

    /// The health of the gateway's role, with each partition.
    var role: RoleHealth {
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

    /// The state of the log.
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

    /// Returns the reason why nothing more can be published to a partition; nil: it can.
    func refusal(of partition: Int) -> ReelError? {
        // An event that cannot be read back is never acknowledged.
        (divergence ?? witnessed[partition])?.forClients ?? standstill(of: partition)
            ?? ends[partition].map { ReelError.ended($0.next) }
    }

    /// Returns the first seq of a partition that can be read; −1 if the partition is empty. Seeds cannot be read: their
    /// content is in a snapshot.
    func first(_ partition: Int) -> Seq {
        firsts[partition] < 0 ? .none : max(firsts[partition], seedsEnds[partition])
    }

    /// Records that a batch of the tail was read. Returns true if the partition could not be read before.
    mutating func read(_ batch: TailBatch) -> Bool {
        progress.read(batch.partition, to: batch.last)
        if let seedsEnd = batch.seedsEnd { seedsEnds[batch.partition] = seedsEnd }
        if firsts[batch.partition] < 0 { firsts[batch.partition] = batch.seqs.lowerBound }
        return losses[batch.partition] != nil
    }

    /// Records that a partition was trimmed before it was read. Reading continues at `first`.
    mutating func skip(_ partition: Int, to first: Seq) {
        progress.skip(partition, to: first)
        firsts[partition] = first
    }
}
