/// A JSON value, such as the value of a field.
///
/// Numbers are doubles, as in the log. Not every integer beyond ±2^53 has a double: store such a number as a string.
/// Equal values have equal canonical bytes, which the fold compares too.
public enum JSONValue: Sendable {
    /// No value. As a field's value it removes the field.
    case null
    /// True or false.
    case bool(Bool)
    /// A number. `publish` throws `bad_number` for one that is not finite.
    case number(Double)
    /// An integer. `publish` throws `bad_number` for one that no double holds exactly. Values that are read have
    /// `number`.
    case integer(Int64)
    /// A text of valid Unicode, without normalisation.
    case string(String)
    /// Values in order.
    case array([JSONValue])
    /// Named values.
    case object(FieldMap<JSONValue>)

    /// The text; nil for any other kind of value.
    public var string: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The number; nil for any other kind of value, and for an integer that no double holds exactly.
    public var number: Double? {
        switch self {
        case .number(let number): number
        case .integer(let integer): Double(exactly: integer)
        default: nil
        }
    }

    /// The truth value; nil for any other kind of value.
    public var bool: Bool? {
        if case .bool(let bool) = self { bool } else { nil }
    }

    /// The values of an array; nil for any other kind of value.
    public var array: [JSONValue]? {
        if case .array(let values) = self { values } else { nil }
    }

    /// The members of an object; nil for any other kind of value.
    public var object: FieldMap<JSONValue>? {
        if case .object(let members) = self { members } else { nil }
    }
}

extension JSONValue: Hashable {
    /// Returns true if both values have the same canonical bytes.
    public static func == (a: JSONValue, b: JSONValue) -> Bool {
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

    /// Hashes the value. An `integer` that a double holds exactly has the hash of that `number`.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0 as UInt8)
        case .bool(let value): hasher.combine(value)
        case .number(let value): hasher.combine(value)
        case .integer(let value):
            if let exact = Double(exactly: value) { hasher.combine(exact) } else { hasher.combine(value) }
        case .string(let text): hasher.combine(text)
        case .array(let values): hasher.combine(values)
        case .object(let members): hasher.combine(members)
        }
    }
}

extension JSONValue: CustomStringConvertible {
    /// The value as canonical JSON (RFC 8785). A number that is not finite becomes `null`.
    public var description: String {
        var bytes: [UInt8] = []
        write(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension JSONValue {
    /// Creates a text.
    public init(_ text: String) { self = .string(text) }
    /// Creates a truth value.
    public init(_ value: Bool) { self = .bool(value) }
    /// Creates a number. `publish` throws `bad_number` for one that is not finite.
    public init(_ number: Double) { self = .number(number) }
    /// Creates a `number`, or an `integer` if no double holds the value exactly. `publish` throws `bad_number` for an
    /// `integer`.
    public init(_ integer: some BinaryInteger) {
        let value = Int64(clamping: integer)
        self = Double(exactly: integer).map(JSONValue.number) ?? .integer(value)
    }
    /// Creates an array.
    public init(_ values: [JSONValue]) { self = .array(values) }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    /// Creates `null`.
    public init(nilLiteral: ()) { self = .null }
    /// Creates a truth value.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates a `number`, or an `integer` if no double holds the value exactly.
    public init(integerLiteral value: Int64) { self = Double(exactly: value).map(JSONValue.number) ?? .integer(value) }
    /// Creates a number. `value` must be finite.
    public init(floatLiteral value: Double) { self = .number(value) }
    /// Creates a text.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Creates an array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// Creates an object.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        var members = FieldMap<JSONValue>()
        for (name, value) in elements { members[name] = value }
        self = .object(members)
    }
}
