public import ReelClient

// The values of the standard library.

extension Bool: FieldValue {
    /// Creates the value of `true` or `false`.
    public init?(json: JSONValue) throws(FieldValueError) {
        guard let bool = json.bool else { throw FieldValueError(found: json.excerpt, expected: "true or false") }
        self = bool
    }

    /// Returns `true` or `false`.
    public func json() -> JSONValue { .bool(self) }
}

extension Int: FieldValue {
    /// The integers that a number of JSON holds exactly.
    static let storable = -9_007_199_254_740_992...9_007_199_254_740_992

    /// Creates the value of a number that is an integer between −2^53 and 2^53.
    public init?(json: JSONValue) throws(FieldValueError) {
        guard let number = json.number, let integer = Int(exactly: number), Self.storable.contains(integer) else {
            throw FieldValueError(found: json.excerpt, expected: "an integer between −2^53 and 2^53")
        }
        self = integer
    }

    /// Returns a number.
    ///
    /// - Throws: `FieldValueError` for an integer beyond ±2^53. An `Int64` has no such limit, because it is stored as a
    ///   text.
    public func json() throws(FieldValueError) -> JSONValue {
        guard Self.storable.contains(self) else {
            throw FieldValueError(found: "\(self)", expected: "an integer between −2^53 and 2^53, or the type Int64")
        }
        return .number(Double(self))
    }
}

extension Int64: FieldValue {
    /// Creates the value of a text of decimal digits. A number that is an integer is accepted too.
    public init?(json: JSONValue) throws(FieldValueError) {
        if let integer = json.string.flatMap({ Int64($0) }) ?? json.number.flatMap({ Int64(exactly: $0) }) {
            self = integer
        } else {
            throw FieldValueError(found: json.excerpt, expected: "an integer of 64 bits as a text")
        }
    }

    /// Returns the decimal digits as a text, because a number of JSON does not hold every integer of 64 bits.
    public func json() -> JSONValue { .string(String(self)) }
}

extension Double: FieldValue {
    /// Creates the value of a number.
    public init?(json: JSONValue) throws(FieldValueError) {
        guard let number = json.number, number.isFinite else {
            throw FieldValueError(found: json.excerpt, expected: "a number")
        }
        self = number
    }

    /// Returns a number.
    ///
    /// - Throws: `FieldValueError` for NaN and infinity.
    public func json() throws(FieldValueError) -> JSONValue {
        guard isFinite else { throw FieldValueError(found: "\(self)", expected: "a finite number") }
        return .number(self)
    }
}

extension String: FieldValue {
    /// Creates the value of a text.
    public init?(json: JSONValue) throws(FieldValueError) {
        guard let text = json.string else { throw FieldValueError(found: json.excerpt, expected: "a text") }
        self = text
    }

    /// Returns a text.
    public func json() -> JSONValue { .string(self) }
}

extension JSONValue: FieldValue {
    /// Creates the value itself.
    public init?(json: JSONValue) { self = json }

    /// Returns the value itself.
    public func json() -> JSONValue { self }
}

extension Optional: FieldValue where Wrapped: FieldValue {
    /// Creates the value of the wrapped type.
    public init?(json: JSONValue) throws(FieldValueError) {
        if json == .null {
            self = .none
        } else if let wrapped = try Wrapped(json: json) {
            self = .some(wrapped)
        } else {
            return nil
        }
    }

    /// Returns the JSON value of the wrapped value, or `null`, which removes the field.
    public func json() throws(FieldValueError) -> JSONValue { try self?.json() ?? .null }
}

extension Array: FieldValue where Element: FieldValue {
    /// Creates the values of an array. Nil if this version of the app does not know one of the elements.
    public init?(json: JSONValue) throws(FieldValueError) {
        guard let stored = json.array else { throw FieldValueError(found: json.excerpt, expected: "an array") }
        self = []
        reserveCapacity(stored.count)
        for json in stored {
            guard let element = try Element(json: json) else { return nil }
            append(element)
        }
    }

    /// Returns an array.
    ///
    /// - Throws: The error of an element that has no JSON form.
    public func json() throws(FieldValueError) -> JSONValue {
        var values: [JSONValue] = []
        values.reserveCapacity(count)
        for element in self { values.append(try element.json()) }
        return .array(values)
    }
}

extension FieldValue where Self: RawRepresentable, RawValue: FieldValue {
    /// Creates the case of a raw value. Nil for a raw value that this version of the app does not know.
    public init?(json: JSONValue) throws(FieldValueError) {
        guard let raw = try RawValue(json: json) else { return nil }
        self.init(rawValue: raw)
    }

    /// Returns the raw value.
    public func json() throws(FieldValueError) -> JSONValue { try rawValue.json() }
}
