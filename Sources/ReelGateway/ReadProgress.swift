import ReelCore
import ReelNode

/// How far a gateway has read each partition of the log.
struct ReadProgress {
    /// The last seq of each partition when the node started; −1: empty.
    let goals: [Seq]
    /// The last seq that was read of each partition; −1: none.
    private(set) var positions: [Seq]
    /// For each partition why it is not read any further; nil: it is.
    private var stops: [PartitionHealth.Stop?]
    /// For each partition the seq at which reading continued after records that were trimmed unread; nil: none were.
    private var skips: [Seq?]

    /// A gateway that starts at a log with these ends.
    init(goals: [Seq]) {
        self.goals = goals
        positions = [Seq](repeating: .none, count: goals.count)
        stops = [PartitionHealth.Stop?](repeating: nil, count: goals.count)
        skips = [Seq?](repeating: nil, count: goals.count)
    }

    /// The gateway has read a partition up to here.
    mutating func read(_ partition: Int, to seq: Seq) {
        positions[partition] = max(positions[partition], seq)
    }

    /// A partition was trimmed before it was read: reading continues at this seq.
    mutating func skip(_ partition: Int, to first: Seq) {
        skips[partition] = first
        read(partition, to: first - 1)
    }

    /// A partition is not read any further: it holds what this version does not know.
    mutating func stop(_ partition: Int, _ stop: PartitionHealth.Stop) {
        stops[partition] = stop
    }

    /// Why a partition is not read any further; nil: it is.
    func stop(of partition: Int) -> PartitionHealth.Stop? { stops[partition] }

    /// How a partition stands. `trouble` is why it cannot be read at present, nil if it can.
    func health(of partition: Int, trouble: PartitionHealth.Stop?) -> PartitionHealth {
        PartitionHealth(
            seq: positions[partition],
            goal: goals[partition],
            skippedTo: skips[partition],
            stop: stops[partition] ?? trouble
        )
    }
}
