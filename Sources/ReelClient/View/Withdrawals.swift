import Synchronization

/// Counts the times that own text was shown and then withdrawn, or withdrawn and then shown.
///
/// The fold knows what an author had read of others by a seq. It cannot know which of its own texts the author had in
/// front of it: a splice counts all of them. So a splice that was made before such a change must not be published.
struct Withdrawals: Sendable {
    /// Model, a zero byte, id, a zero byte, field name.
    typealias Field = [UInt8]

    private static let made = Atomic(0)
    private static let fieldsMax = 4_096

    /// Grows with each change. Each value begins above all counts of the values made before it.
    private(set) var count: Int
    /// The count after the last change of a field.
    private var last: [Field: Int] = [:]
    /// The count after the last change of any field that is not listed.
    private var others: Int

    /// A counter of changes to come.
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

    /// True if the text has changed in this way since the count was this.
    func concern(_ field: Field, since count: Int) -> Bool { max(others, last[field] ?? 0) > count }
}
