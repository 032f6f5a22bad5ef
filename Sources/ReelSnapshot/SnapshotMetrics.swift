import ReelNode

/// What a snapshot node counts.
struct SnapshotMetrics: Sendable {
    /// Events folded.
    let events: Counter
    /// Records without effect.
    let voids: Counter
    /// Snapshots, deltas and objects answered.
    let answers: Counter

    init(_ metrics: Metrics) {
        events = metrics.counter("reel_snapshot_events_total", "Events folded.")
        voids = metrics.counter("reel_snapshot_void_records_total", "Records of the log that are no valid event.")
        answers = metrics.counter("reel_snapshot_answers_total", "Snapshots, deltas and objects answered.")
    }
}
