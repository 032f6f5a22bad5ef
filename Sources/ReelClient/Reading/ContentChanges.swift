/// The changes of a stream's readable content between two moments.
package struct ContentChanges: Sendable {
    /// The objects that look different. Each was made, changed or deleted by any device, or an own change of it is now
    /// confirmed.
    var keys: Set<[UInt8]> = []
    /// True if every object may look different, and not only those in `objects`.
    package var isReset = false

    /// The names of the objects that look different.
    package var objects: [ObjectName] { keys.map { ObjectName($0) } }

    var isEmpty: Bool { keys.isEmpty && !isReset }

    mutating func add(_ other: ContentChanges) {
        keys.formUnion(other.keys)
        isReset = isReset || other.isReset
    }
}
