import ReelCore

/// The events of one stream that are folded and not in the index yet, as chunks.
struct PendingEvents {
    private(set) var chunks: [EventChunk] = []
    /// The size of the events' values in bytes.
    private(set) var bytes = 0

    /// Adds an event's value and outcome. The seqs must ascend.
    mutating func append(_ seq: Seq, _ value: Bytes, _ outcome: StoredOutcome) {
        if chunks.last?.isFull ?? true { chunks.append(EventChunk()) }
        chunks[chunks.count - 1].append(seq, value, outcome)
        bytes += value.count
    }

    /// Removes the events and frees their memory: a cached stream that gets no events must not keep a large chunk.
    mutating func removeAll() {
        chunks = []
        bytes = 0
    }
}
