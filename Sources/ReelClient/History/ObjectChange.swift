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

    /// The causes of a change: all that have written the object since the token. A change with `origin == .own` has
    /// nothing that this device did not do itself. Any other origin has, or may have.
    public struct Origin: OptionSet, Sendable, Hashable, Codable {
        /// The bits of the causes.
        public let rawValue: Int

        /// Creates a set of causes from its bits.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// An event that this device has published. Its confirmation by the stream is no further change.
        public static let own = Origin(rawValue: 1)
        /// An event of another device, or of this one that its store does not know: it was restored from a backup.
        public static let remote = Origin(rawValue: 2)
        /// A snapshot or a delta, in which the author of a change cannot be told.
        public static let load = Origin(rawValue: 4)
        /// An own event that was shown before has lost its effect, or has got it again. The stream has rejected the
        /// event, or will reject it as it looks now, or the app has withdrawn it.
        public static let withdrawn = Origin(rawValue: 8)
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

extension ObjectChange.Origin: CustomStringConvertible {
    /// The names of the causes, such as `[own, remote]`.
    public var description: String {
        let names: [(cause: Self, name: String)] = [
            (.own, "own"), (.remote, "remote"), (.load, "load"), (.withdrawn, "withdrawn"),
        ]
        return "[" + names.filter { contains($0.cause) }.map(\.name).joined(separator: ", ") + "]"
    }
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
