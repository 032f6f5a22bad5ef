package import ReelCore

extension JSONValue {
    /// Reads the value of a JSON text. Nil if it is not valid JSON, or more than 64 levels deep.
    package init?(parsing bytes: Bytes) {
        var reader = JSONReader(bytes, levels: 64, shape: .badJSON)
        guard let value = try? JSONValue(&reader), (try? reader.end()) != nil else { return nil }
        self = value
    }

    private init(_ reader: inout JSONReader) throws(ReelError) {
        switch try reader.kind() {
        case .null:
            try reader.null()
            self = .null
        case .boolean: self = .bool(try reader.boolean())
        case .string: self = .string(try reader.string())
        case .number:
            guard let number = Double(String(decoding: try reader.number(), as: UTF8.self)), number.isFinite else {
                throw ReelError(.badNumber, "found a number beyond what a double holds")
            }
            self = .number(number)
        case .array:
            var values: [JSONValue] = []
            try reader.array { (reader) throws(ReelError) in values.append(try JSONValue(&reader)) }
            self = .array(values)
        case .object:
            var members = FieldMap<JSONValue>()
            try reader.object { (reader, name) throws(ReelError) in members[name.string] = try JSONValue(&reader) }
            self = .object(members)
        }
    }
}
