/// The difference between an object at a `ChangeToken` and the same object now.
public struct ObjectChange: Sendable, Hashable, Identifiable {
    /// The kind of a change.
    public enum Kind: Sendable, Hashable, Codable {
        /// The object did not exist at the token, and exists now.
        case inserted
        /// The object existed at the token, and has other fields now.
        case updated
        /// The object existed at the token, and does not exist now.
        case deleted
    }

    /// The causes of a change. Several causes can have changed one object.
    public struct Origin: OptionSet, Sendable, Hashable, Codable {
        /// The bits of the causes.
        public let rawValue: Int

        /// Creates a set of causes from its bits.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// An own event of this device, or the end of one that the stream has rejected.
        public static let own = Origin(rawValue: 1)
        /// An event of another device.
        public static let remote = Origin(rawValue: 2)
        /// A snapshot or a delta, in which the author of a change cannot be told.
        public static let load = Origin(rawValue: 4)
    }

    /// The value of a field at the token.
    public enum OldValue: Sendable, Hashable {
        /// The object had no such field.
        case absent
        /// The field had this value.
        case value(JSONValue)
        /// The field had a value of more than 1,024 bytes, which is not kept.
        case tooLong
    }

    /// The name of the object.
    public let name: ObjectName
    /// The kind of the change.
    public let kind: Kind
    /// The causes of the change.
    public let origin: Origin
    /// The object now, with all own events; nil if it was deleted.
    public let object: SyncObject?
    /// The values that the changed fields had at the token, by field. For an inserted object these are all its fields,
    /// and for a deleted one all that it had.
    public let changed: FieldMap<OldValue>

    /// The name of the object.
    public var id: ObjectName { name }
}

/// The changes of a stream since a `ChangeToken`.
public struct StreamChanges: Sendable {
    /// The token for the next call.
    public let token: ChangeToken
    /// True if this device does not know the changes since the token. Then read every object of `snapshot`; `objects`
    /// is empty.
    public let isReset: Bool
    /// The objects that look different, sorted by their names.
    public let objects: [ObjectChange]
    /// The stream at the moment of the answer and of the token. The device's storage keeps old data for it, so release
    /// it soon.
    public let snapshot: StreamSnapshot
}
