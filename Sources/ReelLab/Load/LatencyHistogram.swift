/// A histogram of durations, after Gil Tene's HdrHistogram. No slot is wider than 1/128 of its values. So any quantile
/// of any number of values is within 0.8 %, in a few kilobytes. Two histograms can be added.
public struct LatencyHistogram: Sendable, Equatable {
    /// The number of slots for each doubling of the value.
    private static let slots: UInt64 = 128
    private static let bits = 7

    private var counts: [UInt64] = []
    /// The number of values.
    public private(set) var count: UInt64 = 0
    /// The largest value, exactly, in nanoseconds; 0 if there is none.
    public private(set) var max: UInt64 = 0
    private var sum: Double = 0

    /// Creates an empty histogram.
    public init() {}

    /// Adds a duration in nanoseconds; a negative one counts as 0.
    public mutating func add(_ nanoseconds: Int64) {
        let value = UInt64(Swift.max(0, nanoseconds))
        let slot = Self.slot(of: value)
        if slot >= counts.count { counts += repeatElement(0, count: slot + 1 - counts.count) }
        counts[slot] += 1
        count += 1
        sum += Double(value)
        max = Swift.max(max, value)
    }

    /// Adds the values of another histogram.
    public mutating func add(_ other: LatencyHistogram) {
        if other.counts.count > counts.count {
            counts += repeatElement(0, count: other.counts.count - counts.count)
        }
        for (slot, count) in other.counts.enumerated() { counts[slot] += count }
        count += other.count
        sum += other.sum
        max = Swift.max(max, other.max)
    }

    /// The mean in nanoseconds; 0 if there is no value.
    public var mean: Double { count == 0 ? 0 : sum / Double(count) }

    /// Returns the value in nanoseconds that `part` of all values (0 to 1) do not exceed; 0 if there is no value.
    public func quantile(_ part: Double) -> UInt64 {
        let rank = UInt64((Double(count) * Swift.min(Swift.max(part, 0), 1)).rounded(.up))
        var seen: UInt64 = 0
        for (slot, count) in counts.enumerated() where count > 0 {
            seen += count
            if seen >= rank { return Swift.min(Self.highest(in: slot), max) }
        }
        return max
    }

    /// The slots with values: the highest value of each in nanoseconds, and its count.
    public var filled: [(upTo: UInt64, count: UInt64)] {
        counts.enumerated().filter { $0.element > 0 }.map { (Self.highest(in: $0.offset), $0.element) }
    }

    private static func slot(of value: UInt64) -> Int {
        guard value >= slots else { return Int(value) }
        let shift = 63 - value.leadingZeroBitCount - bits
        return Int(UInt64(shift) * slots + value >> UInt64(shift))
    }

    private static func highest(in slot: Int) -> UInt64 {
        let slot = UInt64(slot)
        guard slot >= 2 * slots else { return slot }
        let shift = slot / slots - 1
        return (slot % slots + slots) << shift + (1 << shift - 1)
    }
}
