/// The changes of one commit, in the order in which the storage applies them.
public struct StorageChanges: Sendable {
    /// One change of a storage.
    public enum Change: Sendable {
        /// Sets the value of a key.
        case put(key: [UInt8], value: [UInt8])
        /// Removes a key, if it is there.
        case remove(key: [UInt8])
        /// Removes all keys in `from..<to`.
        case removeRange(from: [UInt8], to: [UInt8])
    }

    /// All changes, the first one first.
    public private(set) var changes: [Change] = []

    /// The bytes of all keys and values in the changes.
    public private(set) var bytes = 0

    /// Creates an empty list.
    public init() {}

    /// True if there are no changes.
    public var isEmpty: Bool { changes.isEmpty }

    /// Adds a change that sets the value of a key.
    public mutating func put(_ key: [UInt8], _ value: [UInt8]) {
        bytes += key.count + value.count
        changes.append(.put(key: key, value: value))
    }

    /// Adds a change that removes a key.
    public mutating func remove(_ key: [UInt8]) {
        bytes += key.count
        changes.append(.remove(key: key))
    }

    /// Adds the changes of another list.
    mutating func append(_ other: StorageChanges) {
        bytes += other.bytes
        changes += other.changes
    }

    /// Adds a change that removes all keys in `start..<end`.
    public mutating func removeRange(from start: [UInt8], to end: [UInt8]) {
        bytes += start.count + end.count
        changes.append(.removeRange(from: start, to: end))
    }
}
