public import ReelClient

/// A type of values that a field can hold.
///
/// The types of the standard library, `Timestamp`, `Rank`, `ID` and `Ref` conform. The module `ReelFoundation` adds
/// `Date`, `UUID`, `URL`, `Data` and `Decimal`. An enum with raw values conforms by its declaration alone:
///
///     enum Label: String, FieldValue { case none, urgent, later }
public protocol FieldValue: Sendable {
    /// Creates the value of a stored JSON value, which is not `null`. Nil for a value that only a newer version of the
    /// app knows: the property then shows its default, and the stored value stays.
    ///
    /// - Throws: `FieldValueError` if no version of this type can have written the JSON value.
    init?(json: JSONValue) throws(FieldValueError)

    /// Returns the JSON value to store. `null` removes the field.
    ///
    /// - Throws: `FieldValueError` if the value has no JSON form, such as NaN.
    func json() throws(FieldValueError) -> JSONValue
}

/// The error of a value that a field cannot hold, or that cannot be read from a field.
public struct FieldValueError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The value that was found, shortened if it is long.
    public var found: String
    /// The description of the values that are expected.
    public var expected: String

    /// Creates an error: "found NaN, expected a finite number".
    ///
    /// - Parameters:
    ///   - found: the value that was found.
    ///   - expected: the description of the values that are expected.
    public init(found: String, expected: String) {
        self.found = found
        self.expected = expected
    }

    /// The sentence that says what was found and what was expected.
    public var description: String { "found \(found), expected \(expected)" }
}

extension JSONValue {
    /// The value as JSON for a message; a description of its size if it is long.
    package var excerpt: String {
        switch self {
        case .string(let text) where text.utf8.count > 60: "a text of \(text.utf8.count) bytes"
        case .array(let values): "an array of \(values.count) values"
        case .object(let members): "an object with \(members.count) members"
        case .integer(let integer): "\(integer)"
        default: description
        }
    }
}
