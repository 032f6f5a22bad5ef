public import ReelClient

/// A reference to an object of another model.
///
/// A reference may dangle: its target has not arrived yet, was deleted, or never existed. `Dataset.resolve` reads the
/// target.
public struct Ref<Target: Model>: Hashable, Sendable, Codable {
    /// The id of the target.
    public var id: ModelID<Target>

    /// Creates a reference to the object with this id.
    public init(_ id: ModelID<Target>) { self.id = id }

    /// Creates a reference to an object.
    public init(_ target: Target) { id = target.id }
}

extension Ref: CustomStringConvertible {
    /// The id of the target.
    public var description: String { id.text }
}

extension Ref: FieldValue {
    /// Creates the reference that a stored id stands for.
    public init?(json: JSONValue) throws(FieldValueError) {
        guard let id = try ModelID<Target>(json: json) else { return nil }
        self.init(id)
    }

    /// Returns the id of the target.
    public func json() throws(FieldValueError) -> JSONValue { try id.json() }
}
