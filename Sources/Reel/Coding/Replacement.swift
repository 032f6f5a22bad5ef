/// One replacement in a sequence of units, such as the scalars of a text.
struct Replacement: Equatable {
    /// The number of units before the replaced ones.
    var start: Int
    /// The number of units that are replaced.
    var removed: Int
    /// The number of units that replace them.
    var inserted: Int

    /// A part of a replacement after it was moved.
    struct Part: Equatable {
        /// The number of units before the removed ones, after the parts before this one were performed.
        var start: Int
        /// The number of units that are removed.
        var removed: Int
        /// True if the units of the replacement are inserted here.
        var inserts: Bool
    }

    /// Returns the smallest replacement that turns one sequence of bytes into another. Nil if both are equal.
    static func between(_ old: UnsafeBufferPointer<UInt8>, _ new: UnsafeBufferPointer<UInt8>) -> Replacement? {
        let prefix = commonPrefix(old, new)
        if prefix == old.count, prefix == new.count { return nil }
        let suffix = commonSuffix(old, new, after: prefix)
        return Replacement(
            start: prefix,
            removed: old.count - prefix - suffix,
            inserted: new.count - prefix - suffix
        )
    }

    /// Returns the number of bytes at the start that are equal.
    static func commonPrefix(_ old: UnsafeBufferPointer<UInt8>, _ new: UnsafeBufferPointer<UInt8>) -> Int {
        let shorter = min(old.count, new.count)
        var prefix = 0
        while prefix < shorter, old[prefix] == new[prefix] { prefix += 1 }
        return prefix
    }

    /// Returns the number of bytes at the end that are equal, without those in the first `prefix` bytes.
    static func commonSuffix(
        _ old: UnsafeBufferPointer<UInt8>,
        _ new: UnsafeBufferPointer<UInt8>,
        after prefix: Int
    ) -> Int {
        let most = min(old.count, new.count) - prefix
        var suffix = 0
        while suffix < most, old[old.count - 1 - suffix] == new[new.count - 1 - suffix] { suffix += 1 }
        return suffix
    }

    /// Returns this replacement as it is performed after another one of the same sequence. Units that the other one
    /// inserted stay.
    func rebased(over other: Replacement) -> [Part] {
        let (end, otherEnd) = (start + removed, other.start + other.removed)
        if end <= other.start { return [Part(start: start, removed: removed, inserts: true)] }
        if start >= otherEnd {
            return [Part(start: start + other.inserted - other.removed, removed: removed, inserts: true)]
        }
        let rest = max(0, end - otherEnd)
        if start >= other.start { return [Part(start: other.start + other.inserted, removed: rest, inserts: true)] }
        let first = Part(start: start, removed: other.start - start, inserts: true)
        if rest == 0 { return [first] }
        return [first, Part(start: start + inserted + other.inserted, removed: rest, inserts: false)]
    }
}
