internal import ReelCore

/// The size of a stream's events on the connection, in the last three to six seconds.
struct EventCost: Sendable {
    private struct Window {
        var beginMs: Int64 = 0
        var count = 0
        var bytes = 0
        /// The seq before the first event.
        var first: Seq = .none
    }

    private static let windowMs: Int64 = 3_000

    private var former = Window()
    private var present = Window()
    /// The mean number of bytes for one seq of the partition, as of the time at which the link was too slow.
    private var bytesPerSeq = 0.0

    /// Counts events that have arrived.
    mutating func add(_ events: ServerFrame.Events, nowMs: Int64) {
        turn(nowMs: nowMs)
        if present.count == 0 { present.first = events.from - 1 }
        present.count += events.events.count
        present.bytes += events.events.reduce(0) { $0 + $1.value.count }
    }

    private mutating func turn(nowMs: Int64) {
        let age = nowMs - present.beginMs
        guard age >= Self.windowMs else { return }
        former = age < 2 * Self.windowMs ? present : Window()
        present = Window(beginMs: nowMs)
    }

    /// True if the changed objects of a state are shorter than the counted events. Records the cost of the events.
    ///
    /// - Parameters:
    ///   - objects: the sums over all objects.
    ///   - seq: the last folded seq.
    ///   - nowMs: the time.
    mutating func exceeds(_ objects: FoldTotals, seq: Seq, nowMs: Int64) -> Bool {
        turn(nowMs: nowMs)
        let first = former.count > 0 ? former.first : present.first
        let (count, bytes) = (former.count + present.count, former.bytes + present.bytes)
        guard count > 0, seq > first else { return false }
        bytesPerSeq = Double(bytes) / Double(seq - first)
        let living = max(1, objects.livingObjects)
        return min(living, count) * (objects.objectBytes / living) < bytes
    }

    /// The size of a delta with hardly any change, in bytes.
    private static let emptyDelta = 1 << 10

    /// True if the events of this many seqs are longer than a delta of this many bytes. A delta with hardly any change
    /// shows that there are few events.
    func exceeds(delta bytes: Int, seqs: Int64) -> Bool {
        bytes > Self.emptyDelta && Double(seqs) * bytesPerSeq > Double(bytes)
    }
}
