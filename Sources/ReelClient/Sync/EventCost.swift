internal import ReelCore

/// The size of a stream's events on the connection, in the last three to six seconds.
struct EventCost: Sendable {
    private struct Window {
        var beginMs: Int64 = 0
        var count = 0
        var bytes = 0
    }

    private static let windowMs: Int64 = 3_000

    private var former = Window()
    private var present = Window()
    /// The mean size of an event, as of the time at which the link was too slow.
    private var bytesPerEvent = 0.0

    /// Counts events that have arrived.
    mutating func add(_ events: ServerFrame.Events, nowMs: Int64) {
        turn(nowMs: nowMs)
        present.count += events.events.count
        present.bytes += events.events.reduce(0) { $0 + $1.value.count }
    }

    private mutating func turn(nowMs: Int64) {
        let age = nowMs - present.beginMs
        guard age >= Self.windowMs else { return }
        former = age < 2 * Self.windowMs ? present : Window()
        present = Window(beginMs: nowMs)
    }

    /// Returns the number of events in the last seconds.
    mutating func count(nowMs: Int64) -> Int {
        turn(nowMs: nowMs)
        return former.count + present.count
    }

    /// True if the changed objects of a state are shorter than the counted events. Records the cost of the events.
    mutating func exceeds(_ objects: FoldTotals) -> Bool {
        let (count, bytes) = (former.count + present.count, former.bytes + present.bytes)
        guard count > 0 else { return false }
        bytesPerEvent = Double(bytes) / Double(count)
        let living = max(1, objects.livingObjects)
        return min(living, count) * (objects.objectBytes / living) < bytes
    }

    /// True if this many events are longer than a delta of this many bytes.
    func exceeds(delta bytes: Int, events: Int64) -> Bool { Double(events) * bytesPerEvent > Double(bytes) }
}
