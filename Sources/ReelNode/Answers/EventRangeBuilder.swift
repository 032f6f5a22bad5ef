public import ReelCore

/// Builds a range of events under limits of count and bytes. Every source of events uses it, so that the same request
/// gets the same pieces from each.
public struct EventRangeBuilder {
    /// The range up to now.
    public private(set) var range: EventRange
    /// True if the range has ended: the next event does not fit.
    public private(set) var isFull = false
    private let bytesMax: Int
    private let eventsMax: Int

    /// Begins a range that proves nothing yet.
    ///
    /// - Parameters:
    ///   - from: The first seq of the range.
    ///   - bytesMax: The maximum size of the events in bytes, unless a single event is larger.
    ///   - eventsMax: The maximum number of events.
    ///   - room: The expected size of the events in bytes.
    public init(from: Seq, bytes bytesMax: Int, events eventsMax: Int = .max, room: Int = 0) {
        range = EventRange(from: from, to: from - 1, room: room)
        (self.bytesMax, self.eventsMax) = (bytesMax, eventsMax)
    }

    /// Adds the next event. Returns false if it does not fit; the range then ends before it.
    public mutating func add(seq: Seq, value: Bytes) -> Bool {
        guard fits(value.count) else {
            end(before: seq)
            return false
        }
        range.append(seq: seq, value: value)
        return true
    }

    private func fits(_ valueBytes: Int) -> Bool {
        guard !isFull, range.count < eventsMax else { return false }
        return range.count == 0 || range.body.count + EventRange.size(value: valueBytes) <= bytesMax
    }

    /// Ends the range before a seq.
    public mutating func end(before seq: Seq) {
        if !isFull { range.to = seq - 1 }
        isFull = true
    }

    /// Extends the range to a seq, unless it has ended. All events up to there must have been added.
    public mutating func prove(to seq: Seq) {
        if !isFull { range.to = seq }
    }
}
