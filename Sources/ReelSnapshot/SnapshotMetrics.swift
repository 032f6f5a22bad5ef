import ReelCore
import ReelNode
import Synchronization

/// The metrics of a snapshot node.
struct SnapshotMetrics: Sendable {
    /// Events folded.
    let events: Counter
    /// Events folded by outcome, in the order of `StoredOutcome.all`.
    private let outcomes: [Counter]
    /// Records without effect.
    let voids: VoidWatch
    /// Requests answered: snapshots, deltas, objects, outcomes and sites.
    let answers: Counter
    /// The durations of the transactions.
    let commits: Histogram
    /// The durations of copying the WAL into the file.
    let checkpoints: Histogram

    private static let bounds = [1, 2, 5, 10, 20, 50, 100, 1_000].map { Duration.milliseconds($0) }

    init(_ metrics: Metrics, epoch: Epoch, logger: Logger) {
        events = metrics.counter("reel_snapshot_events_total", "Events folded.")
        outcomes = StoredOutcome.all.map { outcome in
            metrics.counter(
                "reel_snapshot_outcomes_total",
                "Outcomes of the folded events.",
                labels: ["outcome": outcome.description]
            )
        }
        voids = VoidWatch("reel_snapshot_void_records_total", epoch: epoch, metrics: metrics, logger: logger)
        commits = metrics.histogram(
            "reel_snapshot_commit_seconds",
            "How long a transaction took, from its first row to its commit.",
            bounds: Self.bounds
        )
        checkpoints = metrics.histogram(
            "reel_snapshot_checkpoint_seconds",
            "How long copying the WAL into its file took, between two transactions.",
            bounds: Self.bounds
        )
        answers = metrics.counter("reel_snapshot_answers_total", "Snapshots, deltas and objects answered.")
    }

    /// Counts the outcomes of the events of a batch.
    func add(_ tally: OutcomeTally) {
        for (index, counter) in outcomes.enumerated() {
            let count = tally.count(of: StoredOutcome(StoredOutcome.all[index]))
            if count > 0 { counter.add(count) }
        }
    }

    /// Registers the metrics that are measured when they are read.
    static func watch(_ keepers: [PartitionSupervisor], _ metrics: Metrics) {
        for keeper in keepers {
            metrics.timedCounter(
                "reel_snapshot_fold_seconds_total",
                "Time spent on folding and writing; one second per second is the maximum.",
                labels: ["partition": "\(keeper.identity.partition)"]
            ) { .nanoseconds(keeper.foldedNs.load(ordering: .relaxed)) }
        }
        for keeper in keepers {
            metrics.gauge(
                "reel_snapshot_seq",
                "The last seq folded.",
                labels: ["partition": "\(keeper.identity.partition)"]
            ) { Int(keeper.now.seq) }
        }
        for keeper in keepers {
            metrics.gauge(
                "reel_snapshot_waiting_events",
                "Events that were read and wait to be folded or written.",
                labels: ["partition": "\(keeper.identity.partition)"]
            ) { keeper.now.waitingCount }
        }
        metrics.gauge(
            "reel_snapshot_largest_stream_sites",
            "Sites of the stream that has the most; those that have ended do not count."
        ) { keepers.map(\.now.crowd.most).max() ?? 0 }
        metrics.gauge(
            "reel_snapshot_half_full_streams",
            "Streams that have half or more of the sites that a stream may have."
        ) { keepers.reduce(0) { $0 + $1.now.crowd.halfFull } }
        for state in LogState.allCases {
            metrics.gauge(
                "reel_snapshot_log_state",
                "The state of the log: 1 for the current state, 0 for the others.",
                labels: ["state": state.rawValue]
            ) { keepers.logState == state ? 1 : 0 }
        }
    }
}
