extension Epoch: Codable {
    /// Reads 16 hex digits.
    public init(from decoder: any Decoder) throws { self = try decoder.value("16 hex digits", Epoch.init) }
    /// Writes 16 hex digits.
    public func encode(to encoder: any Encoder) throws { try encoder.write(description) }
}

extension Deployment: Codable {
    /// Reads 16 hex digits.
    public init(from decoder: any Decoder) throws { self = try decoder.value("16 hex digits", Deployment.init) }
    /// Writes 16 hex digits.
    public func encode(to encoder: any Encoder) throws { try encoder.write(description) }
}

extension Site: Codable {
    /// Reads a UUID.
    public init(from decoder: any Decoder) throws { self = try decoder.value("a UUID", Site.init) }
    /// Writes a UUID in lower case.
    public func encode(to encoder: any Encoder) throws { try encoder.write(description) }
}

extension Encoder {
    fileprivate func write(_ text: String) throws {
        var container = singleValueContainer()
        try container.encode(text)
    }
}

extension Decoder {
    fileprivate func value<Value>(_ expected: String, _ make: (String) -> Value?) throws -> Value {
        let text = try singleValueContainer().decode(String.self)
        if let value = make(text) { return value }
        throw DecodingError.dataCorrupted(
            .init(codingPath: codingPath, debugDescription: "found \"\(text)\", expected \(expected)")
        )
    }
}
