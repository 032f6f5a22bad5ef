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
            let text = try reader.number()
            guard let number = Double(shortInteger: text) ?? Double(String(decoding: text, as: UTF8.self)),
                number.isFinite
            else { throw ReelError(.badNumber, "found a number beyond what a double holds") }
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

extension Double {
    /// Reads an integer of JSON; nil for any other number, and for one that may have more than 53 bits.
    fileprivate init?(shortInteger text: Bytes) {
        let isNegative = text.first == UInt8(ascii: "-")
        let digits = text.dropFirst(isNegative ? 1 : 0)
        guard digits.count <= 15 else { return nil }
        var integer: Int64 = 0
        for digit in digits {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
            integer = integer * 10 + Int64(digit - UInt8(ascii: "0"))
        }
        self = isNegative ? -Double(integer) : Double(integer)
    }
}
