internal import ReelClient

/// One field of a schema: its name in the stream, and how its property is read and written.
public struct SchemaField<M: Model>: Sendable {
    /// The kind of a field, which says how concurrent changes merge.
    enum Kind: Sendable {
        case constant, value, counter, mergedSet, text, bytes, reference, order

        /// The JSON value that an absent field stands for in the stream. The first operation counts on it.
        var absent: JSONValue {
            switch self {
            case .counter: 0
            case .mergedSet: []
            case .text, .bytes: ""
            case .constant, .value, .reference, .order: .null
            }
        }
    }

    /// Reads the JSON value of the field into the property.
    typealias Read = @Sendable (JSONValue, inout M) throws(FieldValueError) -> Void
    /// Returns the JSON value of the property.
    typealias Write = @Sendable (M) throws(FieldValueError) -> JSONValue
    /// Returns the operation that makes the property of one value that of another; nil if they are equal. The third
    /// value is the one in the stream, on which the operation is performed; nil: the field is absent.
    typealias Operate = @Sendable (M, M, JSONValue?) throws(FieldValueError) -> FieldOperation?

    let name: String
    let formerly: String?
    let kind: Kind
    let keyPath: any PartialKeyPath<M> & Sendable
    /// True if the property is optional, so that its `nil` removes the field.
    let isOptional: Bool
    let read: Read
    let write: Write
    /// Nil for a field whose changes are plain writes.
    let operate: Operate?

    /// Creates a field whose changes are plain writes.
    init<Value: FieldValue>(
        _ kind: Kind,
        _ name: String,
        _ keyPath: any WritableKeyPath<M, Value> & Sendable,
        formerly: String?
    ) {
        self.init(
            kind,
            name,
            keyPath,
            formerly: formerly,
            isOptional: Value.self is any OptionalValue.Type,
            read: { (json, model) throws(FieldValueError) in
                if let value = try Value(json: json) { model[keyPath: keyPath] = value }
            },
            write: { (model) throws(FieldValueError) in try model[keyPath: keyPath].json() },
            operate: nil
        )
    }

    init(
        _ kind: Kind,
        _ name: String,
        _ keyPath: any PartialKeyPath<M> & Sendable,
        formerly: String?,
        isOptional: Bool = false,
        read: @escaping Read,
        write: @escaping Write,
        operate: Operate?
    ) {
        (self.kind, self.name, self.keyPath, self.formerly) = (kind, name, keyPath, formerly)
        (self.isOptional, self.read, self.write, self.operate) = (isOptional, read, write, operate)
    }
}

/// An `Optional` of any type.
private protocol OptionalValue {}

extension Optional: OptionalValue {}
