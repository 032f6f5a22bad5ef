#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

extension JSON {
    /// Reads one JSON text (RFC 8259) with at most `depth` levels of objects and arrays. Throws for invalid UTF-8, lone
    /// surrogates, and duplicate names in an object. A number that is too large for a double becomes infinite.
    init(reading bytes: [UInt8], depth: Int) throws(Fault) {
        guard String(validating: bytes, as: UTF8.self) != nil else { throw Fault("not UTF-8") }
        var reader = Reader(bytes: bytes)
        self = try reader.value(depth)
        guard reader.atEnd() else { throw Fault("something follows the value") }
    }

    /// Reads bytes that must be exactly the canonical form of their value. A number that is too large for a double has
    /// no canonical form.
    init(canonical bytes: [UInt8], depth: Int) throws(Fault) {
        self = try JSON(reading: bytes, depth: depth)
        guard canonical == bytes else { throw Fault("not in canonical form") }
    }
}

private struct Reader {
    let bytes: [UInt8]
    var position = 0

    var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    mutating func take(_ wanted: Unicode.Scalar) -> Bool {
        guard next == UInt8(ascii: wanted) else { return false }
        position += 1
        return true
    }

    mutating func expect(_ wanted: Unicode.Scalar) throws(Fault) {
        guard take(wanted) else { throw Fault("no \(wanted) at byte \(position)") }
    }

    mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { position += 1 }
    }

    mutating func atEnd() -> Bool {
        skipSpace()
        return next == nil
    }

    mutating func value(_ depth: Int) throws(Fault) -> JSON {
        skipSpace()
        switch next {
        case UInt8(ascii: "{"): return try object(depth)
        case UInt8(ascii: "["): return try array(depth)
        case UInt8(ascii: "\""): return .text(try text())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        default: return .number(try number())
        }
    }

    mutating func word(_ word: String, _ value: JSON) throws(Fault) -> JSON {
        for letter in word.unicodeScalars { try expect(letter) }
        return value
    }

    mutating func object(_ depth: Int) throws(Fault) -> JSON {
        guard depth > 0 else { throw Fault("too deep") }
        try expect("{")
        var members: [JSON.Member] = []
        // Ascending names, as in canonical form, cannot be duplicates.
        var ascends = true
        skipSpace()
        if take("}") { return .object([]) }
        repeat {
            skipSpace()
            let name = try text()
            if let last = members.last, !(last.name < name) { ascends = false }
            skipSpace()
            try expect(":")
            members.append(JSON.Member(name, try value(depth - 1)))
            skipSpace()
        } while take(",")
        try expect("}")
        guard ascends || Set(members.map(\.name)).count == members.count else { throw Fault("two members of one name") }
        return .object(members)
    }

    mutating func array(_ depth: Int) throws(Fault) -> JSON {
        guard depth > 0 else { throw Fault("too deep") }
        try expect("[")
        var values: [JSON] = []
        skipSpace()
        if take("]") { return .array([]) }
        repeat {
            values.append(try value(depth - 1))
            skipSpace()
        } while take(",")
        try expect("]")
        return .array(values)
    }

    mutating func text() throws(Fault) -> Text {
        try expect("\"")
        let start = position
        while let byte = next, byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") { position += 1 }
        var decoded = Array(bytes[start..<position])
        while let byte = next {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return Text(decoded)
            case UInt8(ascii: "\\"): decoded += try escape()
            case ..<0x20: throw Fault("a control character in a text")
            default: decoded.append(byte)
            }
        }
        throw Fault("a text without an end")
    }

    mutating func escape() throws(Fault) -> [UInt8] {
        guard let byte = next else { throw Fault("a text without an end") }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
        case UInt8(ascii: "b"): return [0x08]
        case UInt8(ascii: "f"): return [0x0C]
        case UInt8(ascii: "n"): return [0x0A]
        case UInt8(ascii: "r"): return [0x0D]
        case UInt8(ascii: "t"): return [0x09]
        case UInt8(ascii: "u"): return Array(String(Character(try scalar())).utf8)
        default: throw Fault("an unknown escape")
        }
    }

    /// Reads the digits after `\u`: four digits, or a pair of surrogates.
    mutating func scalar() throws(Fault) -> Unicode.Scalar {
        let first = try codeUnit()
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard first < 0xDC00, take("\\"), take("u") else { throw Fault("a lone surrogate") }
        let second = try codeUnit()
        guard (0xDC00...0xDFFF).contains(second),
            let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        else { throw Fault("a lone surrogate") }
        return scalar
    }

    mutating func codeUnit() throws(Fault) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = next, let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else {
                throw Fault("not four hex digits")
            }
            position += 1
            unit = unit << 4 | UInt32(digit)
        }
        return unit
    }

    mutating func number() throws(Fault) -> Double {
        let start = position
        _ = take("-")
        if !take("0") { try digits() }
        if take(".") { try digits() }
        if take("e") || take("E") {
            if !take("+") { _ = take("-") }
            try digits()
        }
        return strtod(String(decoding: bytes[start..<position], as: UTF8.self), nil)
    }

    mutating func digits() throws(Fault) {
        let start = position
        while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
        guard position > start else { throw Fault("no value at byte \(start)") }
    }
}
