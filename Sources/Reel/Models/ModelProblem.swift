public import ReelClient

/// An object that a model cannot read, or a value that a model cannot write.
///
/// A problem stops only the object that it names: other objects are read, and nothing is deleted.
public struct ModelProblem: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of a problem.
    public enum Kind: String, Sendable {
        /// A field holds a value that its property cannot have, or a property has a value that no field can hold.
        case value
        /// A constant was never written.
        case missingConstant
        /// A constant has another value than before.
        case changedConstant
        /// The id is empty or too long, or differs from the id of the object.
        case id
        /// The object is of another model.
        case model
        /// The schema does not name the property.
        case property
    }

    /// The kind of the problem.
    public let kind: Kind
    /// The object, by its model and id.
    public let object: ObjectName
    /// The field; nil if the problem is one of the whole object.
    public let field: String?
    /// The value that was found, shortened if it is long.
    public let found: String
    /// The description of the values that are expected.
    public let expected: String

    /// The place of the problem, what was found there, and what was expected.
    public var description: String {
        "\(object)\(field.map { ".\($0)" } ?? ""): found \(found), expected \(expected)"
    }

    init(_ kind: Kind, _ object: ObjectName, field: String? = nil, found: String, expected: String) {
        (self.kind, self.object, self.field, self.found, self.expected) = (kind, object, field, found, expected)
    }

    init(_ error: FieldValueError, _ object: ObjectName, field: String) {
        self.init(.value, object, field: field, found: error.found, expected: error.expected)
    }
}
