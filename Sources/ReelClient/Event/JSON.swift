/// A value of a field: what JSON can say.
///
/// Numbers are doubles, as in the log. Not every integer beyond ±2^53 has a double: such a number belongs in a string.
/// Equal values have equal canonical bytes, which is how the fold compares them too.
public enum JSON: Sendable {
    /// No value. As a field's value it removes the field.
    case null
    /// True or false.
    case bool(Bool)
    /// A number. `publish` throws `bad_number` for one that is not finite.
    case number(Double)
    /// An integer. `publish` throws `bad_number` for one that no double holds exactly. What is read has `number`.
    case integer(Int64)
    /// Valid Unicode; no normalisation.
    case string(String)
    /// Values in order.
    case array([JSON])
    /// Named values.
    case object(Members<JSON>)

    /// The text, if it is one.
    public var string: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The number, if it is one; nil for an integer that no double holds exactly.
    public var number: Double? {
        switch self {
        case .number(let number): number
        case .integer(let integer): Double(exactly: integer)
        default: nil
        }
    }

    /// The truth value, if it is one.
    public var bool: Bool? {
        if case .bool(let bool) = self { bool } else { nil }
    }

    /// The values, if it is an array.
    public var array: [JSON]? {
        if case .array(let values) = self { values } else { nil }
    }

    /// The members, if it is an object.
    public var object: Members<JSON>? {
        if case .object(let members) = self { members } else { nil }
    }
}

extension JSON: Equatable {
    /// Whether both have the same canonical bytes.
    public static func == (a: JSON, b: JSON) -> Bool {
        switch (a, b) {
        case (.null, .null): true
        case (.bool(let a), .bool(let b)): a == b
        case (.number(let a), .number(let b)): a == b
        case (.integer(let a), .integer(let b)): a == b
        case (.integer(let integer), .number(let number)), (.number(let number), .integer(let integer)):
            Double(exactly: integer) == number
        case (.string(let a), .string(let b)): a.utf8.elementsEqual(b.utf8)
        case (.array(let a), .array(let b)): a == b
        case (.object(let a), .object(let b)): a == b
        default: false
        }
    }
}

extension JSON: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// `nil` is null.
    public init(nilLiteral: ()) { self = .null }
    /// A truth value.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// An integer: a `number`, or an `integer` where no double holds the value exactly.
    public init(integerLiteral value: Int64) { self = Double(exactly: value).map(JSON.number) ?? .integer(value) }
    /// A number, which must be finite.
    public init(floatLiteral value: Double) { self = .number(value) }
    /// A text.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Values in order.
    public init(arrayLiteral elements: JSON...) { self = .array(elements) }
    /// Named values.
    public init(dictionaryLiteral elements: (String, JSON)...) {
        var members = Members<JSON>()
        for (name, value) in elements { members[name] = value }
        self = .object(members)
    }
}
