public import Foundation
public import Reel
public import ReelClient

// The values of Foundation that a field of a model can hold.

extension Timestamp {
    /// Creates the moment of a date, rounded to milliseconds. Dates more than 2^53 milliseconds away from 1970 become
    /// the last moment in that direction.
    public init(_ date: Date) {
        let ms = (date.timeIntervalSince1970 * 1_000).rounded()
        self.init(ms: Int(exactly: min(max(ms, -0x1p53), 0x1p53)) ?? 0)
    }
}

extension Date {
    /// Creates the date of a moment.
    public init(_ timestamp: Timestamp) {
        self.init(timeIntervalSince1970: Double(timestamp.ms) / 1_000)
    }
}

extension Date: FieldValue {
    /// Creates the date of a number of milliseconds since 1970.
    public init?(json: JSONValue) throws(FieldValueError) {
        guard let timestamp = try Timestamp(json: json) else { return nil }
        self.init(timestamp)
    }

    /// Returns the milliseconds since 1970, rounded, as `Timestamp` does.
    ///
    /// - Throws: `FieldValueError` for a date more than 2^53 milliseconds away from 1970.
    public func json() throws(FieldValueError) -> JSONValue {
        guard let ms = Int(exactly: (timeIntervalSince1970 * 1_000).rounded()) else {
            throw FieldValueError(found: "\(timeIntervalSince1970) seconds", expected: "a date near 1970")
        }
        return try Timestamp(ms: ms).json()
    }
}

extension UUID: FieldValue {
    /// Creates the UUID of a text, in small or capital letters.
    public init?(json: JSONValue) throws(FieldValueError) {
        guard let uuid = json.string.flatMap({ UUID(uuidString: $0) }) else {
            throw FieldValueError(found: json.excerpt, expected: "a UUID")
        }
        self = uuid
    }

    /// Returns the text in small letters.
    public func json() -> JSONValue { .string(uuidString.lowercased()) }
}

extension URL: FieldValue {
    /// Creates the URL of a text.
    public init?(json: JSONValue) throws(FieldValueError) {
        guard let url = json.string.flatMap({ URL(string: $0) }) else {
            throw FieldValueError(found: json.excerpt, expected: "a URL")
        }
        self = url
    }

    /// Returns the absolute URL.
    public func json() -> JSONValue { .string(absoluteString) }
}

extension Data: FieldValue {
    /// Creates the bytes of a text in Base64.
    public init?(json: JSONValue) throws(FieldValueError) {
        guard let data = json.string.flatMap({ Data(base64Encoded: $0) }) else {
            throw FieldValueError(found: json.excerpt, expected: "a text in Base64")
        }
        self = data
    }

    /// Returns the bytes in Base64.
    public func json() -> JSONValue { .string(base64EncodedString()) }
}

extension Decimal: FieldValue {
    /// Creates the number of a text such as `-12.50`. A number of JSON is not accepted, because it may be rounded.
    public init?(json: JSONValue) throws(FieldValueError) {
        guard let text = json.string, text.wholeMatch(of: /-?[0-9]+(?:\.[0-9]+)?/) != nil,
            let decimal = Decimal(string: text, locale: Locale(identifier: "en_US_POSIX"))
        else {
            throw FieldValueError(found: json.excerpt, expected: "a decimal number as a text")
        }
        self = decimal
    }

    /// Returns the digits as a text.
    ///
    /// - Throws: `FieldValueError` for NaN.
    public func json() throws(FieldValueError) -> JSONValue {
        if isNaN { throw FieldValueError(found: "NaN", expected: "a number") }
        return .string(NSDecimalNumber(decimal: self).description(withLocale: Locale(identifier: "en_US_POSIX")))
    }
}
