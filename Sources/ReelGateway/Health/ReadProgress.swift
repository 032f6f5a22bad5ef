import ReelCore
import ReelNode

/// The position up to which a gateway has read each partition of the log.
struct ReadProgress {
    /// The last seq of each partition when the node started; −1: empty.
    let goals: [Seq]
    /// The last seq that was read of each partition; −1: none.
    private(set) var positions: [Seq]
    /// For each partition the reason why it is not read any further; nil: it is.
    private var stops: [PartitionHealth.Stop?]
    /// For each partition the seq at which reading continued after records that were trimmed unread; nil: none were.
    private var skips: [Seq?]

    /// Creates the progress of a gateway that starts while the log has these ends.
    init(goals: [Seq]) {
        self.goals = goals
        positions = [Seq](repeating: .none, count: goals.count)
        stops = [PartitionHealth.Stop?](repeating: nil, count: goals.count)
        skips = [Seq?](repeating: nil, count: goals.count)
    }

    /// Records that the gateway has read a partition up to `seq`.
    mutating func read(_ partition: Int, to seq: Seq) {
        positions[partition] = max(positions[partition], seq)
    }

    /// Records that a partition was trimmed before it was read. Reading continues at `first`.
    mutating func skip(_ partition: Int, to first: Seq) {
        skips[partition] = first
        read(partition, to: first - 1)
    }

    /// Records that a partition is not read any further, because it contains something that this version does not know.
    mutating func stop(_ partition: Int, _ stop: PartitionHealth.Stop) {
        stops[partition] = stop
    }

    /// Returns the reason why a partition is not read any further; nil: it is.
    func stop(of partition: Int) -> PartitionHealth.Stop? { stops[partition] }

    /// Returns the health of a partition. `trouble` is the reason why it cannot be read at present; nil: it can.
    func health(of partition: Int, trouble: PartitionHealth.Stop?) -> PartitionHealth {
        PartitionHealth(
            seq: positions[partition],
            goal: goals[partition],
            skippedTo: skips[partition],
            stop: stops[partition] ?? trouble
        )
    }
}
