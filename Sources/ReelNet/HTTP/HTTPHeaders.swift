/// Header fields in their order. Names are kept in lower case.
public struct HTTPHeaders: Hashable, Sendable, ExpressibleByDictionaryLiteral {
    /// One field.
    public struct Field: Hashable, Sendable {
        /// The name, in lower case.
        public let name: String
        /// The value, without white space around it.
        public let value: String

        /// What stands between its commas, without white space.
        fileprivate var parts: [Substring.UTF8View] {
            Substring(value).utf8.split(separator: UInt8(ascii: ",")).map { $0.trimmingBlanks() }
        }
    }

    /// The fields in their order.
    public private(set) var fields: [Field] = []

    /// No fields.
    public init() {}

    /// `["content-type": "application/json"]`.
    public init(dictionaryLiteral elements: (String, String)...) {
        for (name, value) in elements { add(name, value) }
    }

    /// Adds a field behind the others, whatever is there already.
    public mutating func add(_ name: String, _ value: String) {
        fields.append(Field(name: name.lowercased(), value: value))
    }

    /// Says of an `etag` that the body was coded in another way since (RFC 9110, 8.8.1).
    mutating func weakenETag() {
        for (index, field) in fields.enumerated() where field.name == "etag" && !field.value.hasPrefix("W/") {
            fields[index] = Field(name: field.name, value: "W/" + field.value)
        }
    }

    /// The value of the first field of this name (in lower case); nil if there is none.
    public subscript(_ name: String) -> String? {
        fields.first { $0.name == name }?.value
    }

    /// All values of this name (in lower case), in order.
    public func all(_ name: String) -> [String] {
        fields.filter { $0.name == name }.map(\.value)
    }

    /// Whether a list field (in lower case), such as `connection`, has the token (in lower case), in any case of
    /// letters.
    public func has(_ name: String, token: String) -> Bool {
        fields.contains { field in
            field.name == name
                && field.parts.contains { $0.lazy.map(HTTPCharacters.lowercased).elementsEqual(token.utf8) }
        }
    }

    /// The parts between commas of all fields of this name (in lower case), without white space.
    public func tokens(_ name: String) -> [String] {
        fields.filter { $0.name == name }.flatMap { field in
            field.parts.filter { !$0.isEmpty }.map { String(Substring($0)) }
        }
    }
}

extension Substring.UTF8View {
    /// Without spaces and tabs at either end.
    func trimmingBlanks() -> Substring.UTF8View {
        var part = self
        while let first = part.first, first == 0x20 || first == 0x09 { part.removeFirst() }
        while let last = part.last, last == 0x20 || last == 0x09 { part.removeLast() }
        return part
    }
}
