/// The number of events of a batch by outcome. Allocates once for a batch.
struct OutcomeTally {
    private var counts = [Int](repeating: 0, count: StoredOutcome.all.count + 1)

    /// Counts an event.
    mutating func add(_ outcome: StoredOutcome) {
        counts[Int(outcome.code)] += 1
    }

    /// Returns the number of events with the outcome.
    func count(of outcome: StoredOutcome) -> Int { counts[Int(outcome.code)] }
}
