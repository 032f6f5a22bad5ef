public import ReelCore

/// The position up to which a stream was folded when an object was read. Pass it as the `base` of an event that is made
/// from that object.
public struct ReadPosition: Sendable, Hashable {
    /// The epoch of the log; nil: it was not known yet.
    public let epoch: Epoch?
    /// The last seq folded; −1: none.
    public let seq: Seq
    /// The stream's count of own texts that were withdrawn.
    let withdrawals: Int
}

/// An object as this device shows it.
public struct SyncObject: Sendable, Hashable, Identifiable {
    /// A field with its last writer.
    public struct Field: Sendable, Hashable {
        /// The value of the field.
        public internal(set) var value: JSONValue
        /// The seq of the event that wrote the field last, which a guard names. Nil if that event waits in this
        /// device's queue and has no seq yet.
        public internal(set) var seq: Seq?
        /// The site that wrote the field last.
        public internal(set) var site: Site
    }

    /// The object's model and id.
    public internal(set) var name: ObjectName
    /// The object's name, which identifies it in its stream.
    public var id: ObjectName { name }
    /// The seq of the last event that was applied to the object. Nil if that event waits in this device's queue and has
    /// no seq yet.
    public internal(set) var seq: Seq?
    /// True if the object is not fully confirmed: an own event that has changed it waits in the queue.
    public var isPending: Bool { seq == nil }
    /// The position up to which the stream was folded when the object was read. Pass it as the `base` of an event that
    /// is made from the object.
    public internal(set) var readAt: ReadPosition
    /// The fields by name.
    public internal(set) var fields: FieldMap<Field>

    /// The value of a field; nil if it is absent.
    public subscript(field: String) -> JSONValue? { fields[field]?.value }

    init(_ state: ObjectState, readAt: ReadPosition) {
        self.readAt = readAt
        name = ObjectName(escaped: state.model, state.id)
        seq = Overlay.confirmed(state.seq)
        fields = [:]
        for field in state.fields {
            let value = field.value.withUnsafeBytes { JSONValue(parsing: $0) } ?? .null
            fields[String(escaped: field.name)] = Field(
                value: value,
                seq: Overlay.confirmed(field.seq),
                site: field.site
            )
        }
    }
}

extension SyncObject: CustomStringConvertible {
    /// `MODEL/ID` and the fields as JSON: `task/1 {"done":true,"title":"Milk"}`.
    public var description: String {
        var bytes: [UInt8] = []
        JSONValue.write(fields, to: &bytes) { $0.value.write(to: &$1) }
        return "\(name) \(String(decoding: bytes, as: UTF8.self))"
    }
}

extension ObjectName {
    init(escaped model: [UInt8], _ id: [UInt8]) {
        self.init(String(escaped: model), id: String(escaped: id))
    }

    init(_ key: Overlay.Key) {
        let separator = key.firstIndex(of: 0) ?? key.endIndex
        self.init(escaped: Array(key[..<separator]), Array(key[separator...].dropFirst()))
    }
}

extension String {
    /// Creates the text from its form between the quotes of canonical JSON.
    fileprivate init(escaped bytes: [UInt8]) {
        self = bytes.withUnsafeBytes { JSONText($0).string }
    }
}
