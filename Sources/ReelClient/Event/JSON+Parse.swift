internal import ReelCore

extension JSON {
    /// The value of this JSON text; nil if it is not one text of valid JSON, at most 64 levels deep. Of a name that
    /// stands twice the later value counts.
    init?(parsing bytes: Bytes) {
        var parser = Parser(bytes: bytes)
        guard let value = parser.value(depth: 0), parser.isAtEnd else { return nil }
        self = value
    }

    private struct Parser {
        let bytes: Bytes
        var position = 0

        private static let depthMax = 64

        init(bytes: Bytes) {
            self.bytes = bytes
        }

        var isAtEnd: Bool {
            mutating get {
                skipSpace()
                return position == bytes.count
            }
        }

        mutating func value(depth: Int) -> JSON? {
            skipSpace()
            guard depth < Self.depthMax, position < bytes.count else { return nil }
            switch bytes[position] {
            case UInt8(ascii: "\""): return text().map(JSON.string)
            case UInt8(ascii: "["): return array(depth)
            case UInt8(ascii: "{"): return object(depth)
            case UInt8(ascii: "t"): return word("true", .bool(true))
            case UInt8(ascii: "f"): return word("false", .bool(false))
            case UInt8(ascii: "n"): return word("null", .null)
            default: return number()
            }
        }

        private mutating func skipSpace() {
            while position < bytes.count, [0x20, 0x0a, 0x0d, 0x09].contains(bytes[position]) { position += 1 }
        }

        private mutating func take(_ byte: UInt8) -> Bool {
            skipSpace()
            guard position < bytes.count, bytes[position] == byte else { return false }
            position += 1
            return true
        }

        private mutating func word(_ word: StaticString, _ value: JSON) -> JSON? {
            let end = position + word.utf8CodeUnitCount
            guard end <= bytes.count, word ~= Bytes(rebasing: bytes[position..<end]) else { return nil }
            position = end
            return value
        }

        private mutating func number() -> JSON? {
            let start = position
            while position < bytes.count, "+-.eE0123456789".utf8.contains(bytes[position]) { position += 1 }
            let text = String(decoding: bytes[start..<position], as: UTF8.self)
            guard let number = Double(text), number.isFinite else { return nil }
            return .number(number)
        }

        private mutating func text() -> String? {
            position += 1
            let start = position
            while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
                position += bytes[position] == UInt8(ascii: "\\") ? 2 : 1
            }
            guard position < bytes.count else { return nil }
            defer { position += 1 }
            return JSONText(Bytes(rebasing: bytes[start..<position])).string
        }

        private mutating func array(_ depth: Int) -> JSON? {
            position += 1
            var values: [JSON] = []
            if take(UInt8(ascii: "]")) { return .array(values) }
            while true {
                guard let value = value(depth: depth + 1) else { return nil }
                values.append(value)
                if take(UInt8(ascii: "]")) { return .array(values) }
                guard take(UInt8(ascii: ",")) else { return nil }
            }
        }

        private mutating func object(_ depth: Int) -> JSON? {
            position += 1
            var members = Members<JSON>()
            if take(UInt8(ascii: "}")) { return .object(members) }
            while true {
                skipSpace()
                guard position < bytes.count, bytes[position] == UInt8(ascii: "\""), let name = text(),
                    take(UInt8(ascii: ":")), let value = value(depth: depth + 1)
                else { return nil }
                members[name] = value
                if take(UInt8(ascii: "}")) { return .object(members) }
                guard take(UInt8(ascii: ",")) else { return nil }
            }
        }
    }
}
