internal import ReelCore

/// The error of models that cannot be opened. It names all faults at once.
public struct SchemaError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The faults, at least one.
    public let faults: [SchemaFault]

    /// The faults, each in a sentence.
    public var description: String { faults.map(\.description).joined(separator: "; ") }
}

/// A fault of a schema.
public enum SchemaFault: Sendable, Hashable, CustomStringConvertible {
    /// The name of a model, of a field, or of `formerly:` is empty or longer than 128 bytes.
    case badName(model: String, name: String)
    /// A `Dataset` was opened with an empty list of models.
    case noModels
    /// Two models of a `Dataset` have this name. `types` are the names of the two types, or twice that of one type.
    case modelTwice(model: String, types: [String])
    /// A `Dataset` was opened without the model.
    case unknownModel(model: String)
    /// The schema does not name a property that a call was given.
    case unknownProperty(model: String)
    /// Two fields have this name.
    case fieldTwice(model: String, field: String)
    /// Two fields have the same property.
    case propertyTwice(model: String, fields: [String])
    /// The name in `formerly:` is the name of another field, or of the field itself, or is in another `formerly:`.
    case formerNameTaken(model: String, field: String, formerly: String)
    /// More than one field is the place of an object in a list.
    case orderTwice(model: String, fields: [String])
    /// The default of the property is not the value of an absent field: 0, an empty value, or nil.
    case badDefault(model: String, field: String, found: String, expected: String)

    /// The fault in a sentence.
    public var description: String {
        switch self {
        case .badName(let model, let name):
            """
            found a name of \(name.utf8.count) bytes in the model \(model.debugDescription), \
            expected 1 to \(Limits.name)
            """
        case .noModels: "found an empty list in `models:`, expected the models of the objects in the stream"
        case .modelTwice(let model, let types):
            "found two models of the name \(model), the types \(types.joined(separator: " and "))"
        case .unknownModel(let model): "found the model \(model), expected one of those in `models:` of `open`"
        case .unknownProperty(let model): "found a property that the schema of the model \(model) does not name"
        case .fieldTwice(let model, let field): "found two fields of the name \(field) in the model \(model)"
        case .propertyTwice(let model, let fields):
            "found the fields \(fields.joined(separator: ", ")) of one property in the model \(model)"
        case .formerNameTaken(let model, let field, let formerly):
            "found the former name \(formerly) of the field \(field) at another place in the model \(model)"
        case .orderTwice(let model, let fields):
            "found the places in a list \(fields.joined(separator: ", ")) in the model \(model), expected one"
        case .badDefault(let model, let field, let found, let expected):
            "found the default \(found) of the field \(field) in the model \(model), expected \(expected)"
        }
    }
}
