public import ReelClient
internal import ReelCore

/// The id of an object of one model. Ids of two models are two types, so that one cannot be passed for the other.
///
/// An id is a text of 1 to 128 bytes. Two ids are equal if their UTF-8 bytes are equal.
public struct ModelID<M: Model>: Sendable {
    /// The id as the stream has it.
    public let text: String

    /// Creates the id that has this text. A write of an object throws `ModelProblem` if the text is empty or longer
    /// than 128 bytes.
    public init(_ text: String) { self.text = text }

    /// Returns an id of 128 random bits, as 26 letters and digits. No other device makes the same id.
    public static func random() -> ModelID { ModelID(SyncChange.randomID()) }
}

extension ModelID: Hashable {
    /// Returns true if both ids have the same UTF-8 bytes.
    public static func == (a: ModelID, b: ModelID) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }

    /// Hashes the UTF-8 bytes.
    public func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
        hasher.combine(0xFF as UInt8)
    }
}

extension ModelID: Comparable {
    /// Compares the UTF-8 bytes, as the order of `SyncStream.objects` does.
    public static func < (a: ModelID, b: ModelID) -> Bool { a.text.utf8.lexicographicallyPrecedes(b.text.utf8) }
}

extension ModelID: CustomStringConvertible {
    /// The text.
    public var description: String { text }
}

extension ModelID: ExpressibleByStringLiteral {
    /// Creates the id of a fixed object, such as `"settings"`.
    public init(stringLiteral text: String) { self.init(text) }
}

extension ModelID: Codable {
    /// Reads the text.
    public init(from decoder: any Decoder) throws {
        self.init(try decoder.singleValueContainer().decode(String.self))
    }

    /// Writes the text.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}

extension ModelID: FieldValue {
    /// Creates the id of a stored text.
    public init?(json: JSONValue) throws(FieldValueError) {
        guard let text = json.string, 1...Limits.name ~= text.utf8.count else {
            throw FieldValueError(found: json.excerpt, expected: "an id of 1 to \(Limits.name) bytes")
        }
        self.init(text)
    }

    /// Returns the text.
    public func json() throws(FieldValueError) -> JSONValue {
        guard 1...Limits.name ~= text.utf8.count else {
            throw FieldValueError(found: JSONValue(text).excerpt, expected: "an id of 1 to \(Limits.name) bytes")
        }
        return .string(text)
    }
}
