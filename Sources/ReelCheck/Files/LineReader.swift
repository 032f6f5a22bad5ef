/// Reads one line of JSON from left to right without creating values, because histories are long.
///
/// It does not trust its input: a missing part is a fault, and an offset never leaves the line.
struct LineReader {
    let bytes: UnsafeRawBufferPointer
    private(set) var position: Int
    private let end: Int

    /// The range of a text between its quotes, with its escapes.
    struct RawText {
        let place: Range<Int>
        let hasEscapes: Bool
    }

    init(_ bytes: UnsafeRawBufferPointer, _ line: Range<Int>) {
        self.bytes = bytes
        position = line.lowerBound
        end = line.upperBound
    }

    private var next: UInt8 {
        @inline(__always) get { position < end ? bytes[position] : 0 }
    }

    @inline(__always)
    private mutating func skipSpace() {
        while next == 0x20 || next == 0x09 || next == 0x0D { position += 1 }
    }

    private mutating func expect(_ byte: UInt8) throws(Fault) {
        skipSpace()
        guard next == byte else { throw Fault("no \(Character(Unicode.Scalar(byte))) at byte \(position)") }
        position += 1
    }

    /// Skips the byte and returns true if it is the next one; otherwise returns false.
    mutating func take(_ byte: UInt8) -> Bool {
        skipSpace()
        guard next == byte else { return false }
        position += 1
        return true
    }

    /// Throws an error unless only white space follows.
    mutating func finish() throws(Fault) {
        skipSpace()
        guard position == end else { throw Fault("something follows the value") }
    }

    /// Calls `member` with the name of each member; it must read the value.
    @inline(__always)
    mutating func object(
        _ member: (inout LineReader, UnsafeRawBufferPointer) throws(Fault) -> Void
    ) throws(Fault) {
        try expect(UInt8(ascii: "{"))
        if take(UInt8(ascii: "}")) { return }
        repeat {
            let name = try text()
            try expect(UInt8(ascii: ":"))
            try member(&self, UnsafeRawBufferPointer(rebasing: bytes[name.place]))
        } while take(UInt8(ascii: ","))
        try expect(UInt8(ascii: "}"))
    }

    /// Calls `element` for each element; it must read the element.
    @inline(__always)
    mutating func array(_ element: (inout LineReader) throws(Fault) -> Void) throws(Fault) {
        try expect(UInt8(ascii: "["))
        if take(UInt8(ascii: "]")) { return }
        repeat { try element(&self) } while take(UInt8(ascii: ","))
        try expect(UInt8(ascii: "]"))
    }

    mutating func text() throws(Fault) -> RawText {
        try expect(UInt8(ascii: "\""))
        let start = position
        var hasEscapes = false
        while position < end {
            switch bytes[position] {
            case UInt8(ascii: "\""):
                position += 1
                return RawText(place: start..<position - 1, hasEscapes: hasEscapes)
            case UInt8(ascii: "\\"):
                hasEscapes = true
                position += 2
            default: position += 1
            }
        }
        throw Fault("a text without an end")
    }

    mutating func integer() throws(Fault) -> Int64 {
        skipSpace()
        let isNegative = next == UInt8(ascii: "-")
        if isNegative { position += 1 }
        let start = position
        var value: Int64 = 0
        while next &- UInt8(ascii: "0") < 10, position - start < 18 {
            value = value * 10 + Int64(next - UInt8(ascii: "0"))
            position += 1
        }
        guard position > start, next != UInt8(ascii: "."), next | 0x20 != UInt8(ascii: "e"),
            next &- UInt8(ascii: "0") >= 10
        else { throw Fault("no integer at byte \(start)") }
        return isNegative ? -value : value
    }

    /// Reads sixteen lower-case hex digits in quotes.
    mutating func hex64() throws(Fault) -> UInt64 {
        let place = try text().place
        guard let value = Self.hex64(UnsafeRawBufferPointer(rebasing: bytes[place])) else {
            throw Fault("not 16 lower-case hex digits at byte \(place.lowerBound)")
        }
        return value
    }

    /// Returns the number of sixteen lower-case hex digits; nil for any other text.
    static func hex64(_ text: some Collection<UInt8>) -> UInt64? {
        guard text.count == 16 else { return nil }
        var value: UInt64 = 0
        for byte in text {
            guard let digit = hexDigit(byte) else { return nil }
            value = value << 4 | UInt64(digit)
        }
        return value
    }

    /// Skips any value, and returns its range.
    @discardableResult
    mutating func skip() throws(Fault) -> Range<Int> {
        skipSpace()
        let start = position
        var depth = 0
        repeat {
            skipSpace()
            switch next {
            case UInt8(ascii: "\""): _ = try text()
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                position += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                position += 1
            case 0: throw Fault("a value without an end")
            default:
                position += 1
                if depth == 0 {
                    while ![0, 0x20, 0x2C, 0x5D, 0x7D].contains(next) { position += 1 }
                }
            }
        } while depth > 0
        guard depth == 0, position > start else { throw Fault("no value at byte \(start)") }
        return start..<position
    }

    // MARK: Texts

    /// Returns the bytes of a text with decoded escapes. An invalid escape is kept, because the rules of the log decide
    /// about it.
    func decoded(_ text: RawText) -> [UInt8] {
        let raw = UnsafeRawBufferPointer(rebasing: bytes[text.place])
        guard text.hasEscapes else { return Array(raw) }
        // An invalid escape of two bytes becomes the three bytes of U+FFFD.
        return [UInt8](unsafeUninitializedCapacity: raw.count + raw.count / 2 + 1) { buffer, count in
            var index = 0
            while index < raw.count {
                let byte = raw[index]
                if byte != UInt8(ascii: "\\") || index + 1 == raw.count {
                    buffer[count] = byte
                    (count, index) = (count + 1, index + 1)
                    continue
                }
                index += 2
                switch raw[index - 1] {
                case UInt8(ascii: "n"): buffer[count] = 0x0A
                case UInt8(ascii: "t"): buffer[count] = 0x09
                case UInt8(ascii: "r"): buffer[count] = 0x0D
                case UInt8(ascii: "b"): buffer[count] = 0x08
                case UInt8(ascii: "f"): buffer[count] = 0x0C
                case UInt8(ascii: "u"):
                    let (scalar, length) = Self.scalar(raw, index)
                    for unit in UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter {
                        buffer[count] = unit
                        count += 1
                    }
                    index += length
                    continue
                case let other: buffer[count] = other
                }
                count += 1
            }
        }
    }

    /// Returns the scalar of the digits after `\u`, which may be a pair of surrogates, and its length in bytes.
    private static func scalar(_ raw: UnsafeRawBufferPointer, _ index: Int) -> (Unicode.Scalar, Int) {
        func unit(_ index: Int) -> UInt32? {
            guard index + 4 <= raw.count else { return nil }
            var value: UInt32 = 0
            for byte in raw[index..<index + 4] {
                guard let digit = hexDigit(byte | (byte >= 0x41 && byte <= 0x46 ? 0x20 : 0)) else { return nil }
                value = value << 4 | UInt32(digit)
            }
            return value
        }
        guard let first = unit(index) else { return ("\u{FFFD}", 0) }
        if let scalar = Unicode.Scalar(first) { return (scalar, 4) }
        guard index + 6 <= raw.count, raw[index + 4] == UInt8(ascii: "\\"), raw[index + 5] == UInt8(ascii: "u"),
            let second = unit(index + 6), first < 0xDC00, (0xDC00...0xDFFF).contains(second),
            let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        else { return ("\u{FFFD}", 4) }
        return (scalar, 10)
    }
}

/// True if the bytes are those of the text. Allows `case "name":` in a switch over bytes.
@inline(__always)
func ~= (name: StaticString, bytes: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count == name.utf8CodeUnitCount else { return false }
    for index in 0..<bytes.count where bytes[index] != name.utf8Start[index] { return false }
    return true
}
