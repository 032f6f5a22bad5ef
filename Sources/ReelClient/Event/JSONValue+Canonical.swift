internal import ReelCore

extension JSONValue {
    /// Appends the canonical text (RFC 8785). A number that is not finite has none and becomes `null`. An integer
    /// without an exact double has none and keeps its digits. `SyncEvent.checkNumbers` allows neither in an event.
    func write(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes.append("null")
        case .bool(let value): value ? bytes.append("true") : bytes.append("false")
        case .number(let value): value.isFinite ? bytes.append(number: value) : bytes.append("null")
        case .integer(let value):
            if let exact = Double(exactly: value) { bytes.append(number: exact) } else { bytes.append(integer: value) }
        case .string(let text): bytes.append(quoted: text)
        case .array(let values): Self.write(values, to: &bytes) { $0.write(to: &$1) }
        case .object(let members): Self.write(members, to: &bytes) { $0.write(to: &$1) }
        }
    }

    static func write<Value>(
        _ values: [Value],
        to bytes: inout [UInt8],
        _ body: (Value, inout [UInt8]) -> Void
    ) {
        bytes.append(UInt8(ascii: "["))
        for (index, value) in values.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            body(value, &bytes)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    static func write<Value>(
        _ members: FieldMap<Value>,
        to bytes: inout [UInt8],
        _ body: (Value, inout [UInt8]) -> Void
    ) {
        bytes.append(UInt8(ascii: "{"))
        for (index, member) in members.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            bytes.append(quoted: member.name)
            bytes.append(UInt8(ascii: ":"))
            body(member.value, &bytes)
        }
        bytes.append(UInt8(ascii: "}"))
    }
}
