/// The header fields of a message, in order. Names are stored in lower case.
public struct HTTPHeaders: Hashable, Sendable, ExpressibleByDictionaryLiteral {
    /// A header field.
    public struct Field: Hashable, Sendable {
        /// The name, in lower case.
        public let name: String
        /// The value, without surrounding white space.
        public let value: String

        /// The parts of the value between commas, without surrounding white space.
        fileprivate var parts: [Substring.UTF8View] {
            Substring(value).utf8.split(separator: UInt8(ascii: ",")).map { $0.trimmingBlanks() }
        }
    }

    /// The fields in order.
    public private(set) var fields: [Field] = []

    /// Creates an empty list.
    public init() {}

    /// Creates a list from a literal such as `["content-type": "application/json"]`.
    public init(dictionaryLiteral elements: (String, String)...) {
        for (name, value) in elements { add(name, value) }
    }

    /// Adds a field after the others, even if there are fields of the same name.
    public mutating func add(_ name: String, _ value: String) {
        fields.append(Field(name: name.lowercased(), value: value))
    }

    /// Marks the `etag` as weak, because the body was encoded after the tag was made (RFC 9110, 8.8.1).
    mutating func weakenETag() {
        for (index, field) in fields.enumerated() where field.name == "etag" && !field.value.hasPrefix("W/") {
            fields[index] = Field(name: field.name, value: "W/" + field.value)
        }
    }

    /// The value of the first field of this name (in lower case); nil if there is none.
    public subscript(_ name: String) -> String? {
        fields.first { $0.name == name }?.value
    }

    /// Returns all values of this name (in lower case), in order.
    public func all(_ name: String) -> [String] {
        fields.filter { $0.name == name }.map(\.value)
    }

    /// True if a list field such as `connection` contains the token. `name` and `token` are in lower case; the field's
    /// value may use any case.
    public func has(_ name: String, token: String) -> Bool {
        fields.contains { field in
            field.name == name
                && field.parts.contains { $0.lazy.map(HTTPCharacters.lowercased).elementsEqual(token.utf8) }
        }
    }

    /// Returns the parts between commas of all fields of this name (in lower case), without white space.
    public func tokens(_ name: String) -> [String] {
        fields.filter { $0.name == name }.flatMap { field in
            field.parts.filter { !$0.isEmpty }.map { String(Substring($0)) }
        }
    }
}

extension Substring.UTF8View {
    /// Returns the text without spaces and tabs at either end.
    func trimmingBlanks() -> Substring.UTF8View {
        var part = self
        while let first = part.first, first == 0x20 || first == 0x09 { part.removeFirst() }
        while let last = part.last, last == 0x20 || last == 0x09 { part.removeLast() }
        return part
    }
}
