import Synchronization

/// The own events that the device showed and then withdrew, or withdrew and then showed: their objects, and a counter
/// of their texts.
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
    /// The objects of these events since the last call of `takeObjects`.
    private var objects: Set<Overlay.Key> = []

    /// Creates a counter without changes.
    init() {
        count = Self.made.add(1, ordering: .relaxed).newValue << 40
        others = count
    }

    /// Notes that an event with these texts and objects was withdrawn, or shown again.
    mutating func note(_ fields: [Field], of objects: [Overlay.Key]) {
        self.objects.formUnion(objects)
        if fields.isEmpty { return }
        count += 1
        if last.count + fields.count > Self.fieldsMax { (last, others) = ([:], count) }
        for field in fields { last[field] = count }
    }

    /// Returns the objects of the events since the last call.
    mutating func takeObjects() -> Set<Overlay.Key> {
        if objects.isEmpty { return [] }
        defer { objects = [] }
        return objects
    }

    /// Returns true if the text was withdrawn or shown again after the given count.
    func concern(_ field: Field, since count: Int) -> Bool { max(others, last[field] ?? 0) > count }
}
