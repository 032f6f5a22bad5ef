import Synchronization

/// A counter of own texts that the device showed and then withdrew, or withdrew and then showed.
///
/// The base of a splice shows which events of other devices its author had read. It does not show which own texts were
/// visible at that moment: the fold counts all of them. So a splice that was made before such a change is stale.
struct Withdrawals: Sendable {
    /// The name of a field: model, a zero byte, id, a zero byte, field name.
    typealias Field = [UInt8]

    private static let made = Atomic(0)
    private static let fieldsMax = 4_096

    /// The number of changes. A new counter begins above all counts of earlier counters. So a position that was read in
    /// a former run of the client is older than every change.
    private(set) var count: Int
    /// The count after the last change of a field.
    private var last: [Field: Int] = [:]
    /// The count after the last change of any field that `last` does not list.
    private var others: Int

    /// Creates a counter without changes.
    init() {
        count = Self.made.add(1, ordering: .relaxed).newValue << 40
        others = count
    }

    /// Notes that these texts were withdrawn, or shown again.
    mutating func note(_ fields: [Field]) {
        if fields.isEmpty { return }
        count += 1
        if last.count + fields.count > Self.fieldsMax { (last, others) = ([:], count) }
        for field in fields { last[field] = count }
    }

    /// Returns true if the text was withdrawn or shown again after the given count.
    func concern(_ field: Field, since count: Int) -> Bool { max(others, last[field] ?? 0) > count }
}
