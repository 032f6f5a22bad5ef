internal import ReelCore

extension JSONValue: Codable {
    /// Reads any value. A number becomes `number`, or `integer` if no double holds it exactly.
    public init(from decoder: any Decoder) throws {
        if let container = try? decoder.container(keyedBy: FieldName.self) {
            self = .object(try FieldMap(container))
            return
        }
        if var container = try? decoder.unkeyedContainer() {
            var values: [JSONValue] = []
            while !container.isAtEnd { values.append(try container.decode(JSONValue.self)) }
            self = .array(values)
            return
        }
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int64.self) {
            self = JSONValue(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else {
            self = .string(try container.decode(String.self))
        }
    }

    /// Writes the value as the encoder's own kind of value.
    public func encode(to encoder: any Encoder) throws {
        switch self {
        case .object(let members): return try members.encode(to: encoder)
        case .array(let values):
            var container = encoder.unkeyedContainer()
            for value in values { try container.encode(value) }
        case .null, .bool, .number, .integer, .string:
            var container = encoder.singleValueContainer()
            switch self {
            case .bool(let value): try container.encode(value)
            case .number(let value): try container.encode(value)
            case .integer(let value): try container.encode(value)
            case .string(let value): try container.encode(value)
            default: try container.encodeNil()
            }
        }
    }
}

extension FieldMap: Encodable where Value: Encodable {
    /// Writes an object with the members of the map.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: FieldName.self)
        for (name, value) in self { try container.encode(value, forKey: FieldName(name)) }
    }
}

extension FieldMap: Decodable where Value: Decodable {
    /// Reads the members of an object.
    public init(from decoder: any Decoder) throws {
        try self.init(try decoder.container(keyedBy: FieldName.self))
    }

    fileprivate init(_ container: KeyedDecodingContainer<FieldName>) throws {
        self.init()
        for key in container.allKeys { self[key.stringValue] = try container.decode(Value.self, forKey: key) }
    }
}

/// The name of a member, as a coding key.
private struct FieldName: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(_ name: String) { stringValue = name }
    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

extension SyncEvent: Codable {
    /// Reads an event in the form that `encode(to:)` writes.
    ///
    /// - Throws: `DecodingError.dataCorrupted` for any other value.
    public init(from decoder: any Decoder) throws {
        let value = try JSONValue(from: decoder)
        guard let object = value.object, let event = SyncEvent(object), !event.isInternal,
            event.isBatch == (object["type"] == "batch"), !event.isBatch || !event.changes.isEmpty
        else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "found \(value), expected an event")
            )
        }
        self = event
    }

    /// Writes the event as in a request to a node, without `site`, `op` and `base`.
    ///
    /// - Throws: `EncodingError.invalidValue` for an event that `publish` would refuse with `bad_number` or `bad_json`,
    ///   because JSON has no text for it.
    public func encode(to encoder: any Encoder) throws {
        let value = encoded(base: nil).withUnsafeBytes { JSONValue(parsing: $0) }
        do throws(ReelError) {
            try checkNumbers()
        } catch {
            throw EncodingError.invalidValue(
                self,
                .init(codingPath: encoder.codingPath, debugDescription: error.message)
            )
        }
        guard let value else {
            throw EncodingError.invalidValue(
                self,
                .init(codingPath: encoder.codingPath, debugDescription: "found more levels than an event may have")
            )
        }
        try value.encode(to: encoder)
    }
}
