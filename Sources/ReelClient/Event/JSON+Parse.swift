internal import ReelCore

extension JSON {
    /// Reads the value of a JSON text. Nil if it is not valid JSON, or more than 64 levels deep.
    init?(parsing bytes: Bytes) {
        var reader = JSONReader(bytes, levels: 64, shape: .badJSON)
        guard let value = try? JSON(&reader), (try? reader.end()) != nil else { return nil }
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
            var values: [JSON] = []
            try reader.array { (reader) throws(ReelError) in values.append(try JSON(&reader)) }
            self = .array(values)
        case .object:
            var members = Members<JSON>()
            try reader.object { (reader, name) throws(ReelError) in members[name.string] = try JSON(&reader) }
            self = .object(members)
        }
    }
}
