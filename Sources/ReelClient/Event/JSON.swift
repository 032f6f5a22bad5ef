/// A value of a field: what JSON can say.
///
/// Numbers are doubles, as in the log; an integer beyond ±2^53 belongs in a string. Equal values have equal canonical
/// bytes, which is how the fold compares them too.
public enum JSON: Sendable {
    /// No value. As a field's value it removes the field.
    case null
    /// True or false.
    case bool(Bool)
    /// A finite number.
    case number(Double)
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

    /// The number, if it is one.
    public var number: Double? {
        if case .number(let number) = self { number } else { nil }
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
    /// A number; beyond ±2^53 the nearest double.
    public init(integerLiteral value: Int) { self = .number(Double(value)) }
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
