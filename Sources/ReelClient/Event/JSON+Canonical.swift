internal import ReelCore

extension JSON {
    /// Appends the canonical text (RFC 8785). A number that is not finite has none and becomes `null`.
    func write(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
        case .number(let value): Self.write(number: value, to: &bytes)
        case .string(let text): Self.write(text: text, to: &bytes)
        case .array(let values): Self.write(values, to: &bytes) { $0.write(to: &$1) }
        case .object(let members): Self.write(members, to: &bytes) { $0.write(to: &$1) }
        }
    }

    static func write(number: Double, to bytes: inout [UInt8]) {
        guard number.isFinite else { return bytes.append(contentsOf: "null".utf8) }
        CanonicalNumber.withText(of: number) { bytes.append(contentsOf: $0) }
    }

    static func write(text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
            case 0x08: bytes += "\\b".utf8
            case 0x09: bytes += "\\t".utf8
            case 0x0a: bytes += "\\n".utf8
            case 0x0c: bytes += "\\f".utf8
            case 0x0d: bytes += "\\r".utf8
            case 0..<0x20:
                bytes += byte < 0x10 ? "\\u000".utf8 : "\\u001".utf8
                bytes += String(byte & 15, radix: 16).utf8
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    static func write<Value>(
        _ values: [Value], to bytes: inout [UInt8], _ body: (Value, inout [UInt8]) -> Void
    ) {
        bytes.append(UInt8(ascii: "["))
        for (index, value) in values.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            body(value, &bytes)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    static func write<Value>(
        _ members: Members<Value>, to bytes: inout [UInt8], _ body: (Value, inout [UInt8]) -> Void
    ) {
        bytes.append(UInt8(ascii: "{"))
        for (index, member) in members.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            write(text: member.name, to: &bytes)
            bytes.append(UInt8(ascii: ":"))
            body(member.value, &bytes)
        }
        bytes.append(UInt8(ascii: "}"))
    }
}
