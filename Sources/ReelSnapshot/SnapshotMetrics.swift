import ReelCore
import ReelNode

/// What a snapshot node counts.
struct SnapshotMetrics: Sendable {
    /// Events folded.
    let events: Counter
    /// Records without effect.
    let voids: VoidWatch
    /// Snapshots, deltas and objects answered.
    let answers: Counter
    /// How long the transactions took, in microseconds.
    let commits: Histogram
    /// How long copying the WAL into the file took, in microseconds.
    let checkpoints: Histogram

    private static let bounds = [1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 1_000_000]

    init(_ metrics: Metrics, epoch: Epoch, journal: Journal) {
        events = metrics.counter("reel_snapshot_events_total", "Events folded.")
        voids = VoidWatch("reel_snapshot_void_records_total", epoch: epoch, metrics: metrics, journal: journal)
        commits = metrics.histogram(
            "reel_snapshot_commit_microseconds",
            "How long a transaction took, from its first row to its commit.",
            bounds: Self.bounds
        )
        checkpoints = metrics.histogram(
            "reel_snapshot_checkpoint_microseconds",
            "How long copying the WAL into its file took, between two transactions.",
            bounds: Self.bounds
        )
        answers = metrics.counter("reel_snapshot_answers_total", "Snapshots, deltas and objects answered.")
    }
}
