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

    /// Returns the value of a field; nil if it is absent.
    ///
    /// - Parameters:
    ///   - field: the name of the field.
    ///   - index: the index at which the field probably is. It becomes that of the next field, so fields whose names
    ///     come in the order of JSON need no search.
    package func value(_ field: String, near index: inout Int) -> JSONValue? {
        fields.index(of: field, near: &index).map { fields[$0].value.value }
    }

    init(_ state: ObjectState, readAt: ReadPosition) {
        self.readAt = readAt
        name = ObjectName(escaped: state.model, state.id)
        seq = Overlay.confirmed(state.seq)
        fields = FieldMap(
            sorted: state.fields.map { field in
                let value = field.value.withUnsafeBytes { Field($0, seq: field.seq, site: field.site) }
                return (String(escaped: field.name), value)
            }
        )
    }
}

extension SyncObject.Field {
    /// Reads the value of a field of the fold.
    fileprivate init(_ value: Bytes, seq: Seq, site: Site) {
        self.init(value: JSONValue(parsing: value) ?? .null, seq: Overlay.confirmed(seq), site: site)
    }
}

extension SyncObject {
    /// Reads the row of an object; nil for a tombstone.
    ///
    /// - Parameters:
    ///   - name: the object's model and id.
    ///   - row: the bytes that the fold has written.
    ///   - readAt: the position of the row.
    /// - Throws: `internal` or `bad_json` for bytes that the fold cannot have written.
    init?(_ name: ObjectName, row: Bytes, readAt: ReadPosition) throws(ReelError) {
        var row = try RowFields(row)
        if row.isDeleted { return nil }
        self.readAt = readAt
        self.name = name
        seq = Overlay.confirmed(row.seq)
        var fields: [(name: String, value: Field)] = []
        fields.reserveCapacity(min(row.count, Limits.fields))
        while let field = try row.next() {
            let value = field.withValue { Field($0, seq: field.seq, site: field.site) }
            fields.append((JSONText(field.name).string, value))
        }
        self.fields = FieldMap(sorted: fields)
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

    init(_ key: Overlay.Key) { self = key.withUnsafeBytes { ObjectName($0) } }

    init(_ key: Bytes) {
        let separator = key.firstIndex(of: 0) ?? key.endIndex
        let (model, id) = (Bytes(rebasing: key[..<separator]), Bytes(rebasing: key[separator...].dropFirst()))
        self.init(JSONText(model).string, id: JSONText(id).string)
    }
}

extension String {
    /// Creates the text from its form between the quotes of canonical JSON.
    fileprivate init(escaped bytes: [UInt8]) {
        self = bytes.withUnsafeBytes { JSONText($0).string }
    }
}
