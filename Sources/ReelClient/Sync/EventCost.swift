internal import ReelCore

/// The size of a stream's events on the connection, from a ping on.
struct EventCost: Sendable {
    /// The number of the ping from which is counted.
    private(set) var ping = 0
    private(set) var count = 0
    private(set) var bytes = 0
    /// The seq before the first counted event.
    private var first: Seq = .none
    /// The mean number of bytes for one seq of the partition, as of the time at which the link was too slow.
    private var bytesPerSeq = 0.0

    /// Counts events that have arrived.
    mutating func add(_ events: ServerFrame.Events, ping: Int) {
        if self.ping != ping { (self.ping, count, bytes, first) = (ping, 0, 0, events.from - 1) }
        count += events.events.count
        bytes += events.events.reduce(0) { $0 + $1.value.count }
    }

    /// True if the changed objects of a state are shorter than the counted events. Records the cost of the events.
    ///
    /// - Parameters:
    ///   - objects: the sums over all objects.
    ///   - seq: the last folded seq.
    mutating func exceeds(_ objects: FoldTotals, seq: Seq) -> Bool {
        guard count > 0, seq > first else { return false }
        bytesPerSeq = Double(bytes) / Double(seq - first)
        let living = max(1, objects.livingObjects)
        return min(living, count) * (objects.objectBytes / living) < bytes
    }

    /// True if the events of this many seqs are longer than this many bytes.
    func exceeds(bytes: Int, seqs: Int64) -> Bool { Double(seqs) * bytesPerSeq > Double(bytes) }
}
