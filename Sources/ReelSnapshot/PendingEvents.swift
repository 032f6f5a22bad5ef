import ReelCore

/// The events of one stream that are folded and not in the index yet, as chunks of it.
struct PendingEvents {
    private(set) var chunks: [EventChunk] = []
    /// The bytes of the events' values.
    private(set) var bytes = 0

    /// Adds an event's value and what became of it; seqs grow.
    mutating func append(_ seq: Seq, _ value: Bytes, _ outcome: StoredOutcome) {
        if chunks.last?.isFull ?? true { chunks.append(EventChunk()) }
        chunks[chunks.count - 1].append(seq, value, outcome)
        bytes += value.count
    }

    /// Forgets the events; room for one chunk remains.
    mutating func removeAll() {
        chunks.removeSubrange(min(1, chunks.count)...)
        if !chunks.isEmpty { chunks[0].removeAll() }
        bytes = 0
    }
}
