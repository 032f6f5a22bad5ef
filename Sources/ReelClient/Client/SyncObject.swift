public import ReelCore

/// An object as the device's fold holds it.
public struct SyncObject: Sendable, Equatable {
    /// A field with its last writer.
    public struct Field: Sendable, Equatable {
        /// What it holds.
        public var value: JSON
        /// The seq of the event that wrote it last: what a guard names.
        public var seq: Seq
        /// The site that wrote it last.
        public var site: Site
    }

    /// Model and id.
    public var name: ObjectName
    /// The seq of the last event applied to it.
    public var seq: Seq
    /// The seq up to which the stream was folded when this was read: the `base` of an event that is made of it.
    public var readAt: Seq
    /// Its fields by name.
    public var fields: Members<Field>

    /// The value of a field, nil if it is absent.
    public subscript(field: String) -> JSON? { fields[field]?.value }

    init(_ state: ObjectState, readAt: Seq) {
        self.readAt = readAt
        name = ObjectName(escaped: state.model, state.id)
        seq = state.seq
        fields = [:]
        for field in state.fields {
            let value = field.value.withUnsafeBytes { JSON(parsing: $0) } ?? .null
            fields[String(escaped: field.name)] = Field(value: value, seq: field.seq, site: field.site)
        }
    }
}

extension ObjectState {
    /// Whether it is an object of this model.
    func isOf(_ model: String) -> Bool {
        self.model.withUnsafeBytes { JSONText($0).string }.utf8.elementsEqual(model.utf8)
    }
}

extension ObjectName {
    init(escaped model: [UInt8], _ id: [UInt8]) {
        self.init(String(escaped: model), String(escaped: id))
    }
}

extension String {
    /// The text that stands between the quotes of canonical JSON.
    fileprivate init(escaped bytes: [UInt8]) {
        self = bytes.withUnsafeBytes { JSONText($0).string }
    }
}
