/// Functions that write JSON by appending to bytes. The caller writes the commas and braces.
extension [UInt8] {
    /// Appends text that needs no escapes, such as `{"seq":`.
    @inline(__always)
    package mutating func append(_ literal: StaticString) {
        append(contentsOf: UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
    }

    /// Appends a decimal integer.
    @inlinable
    package mutating func append(integer: some BinaryInteger) {
        append(decimal: UInt64(integer.magnitude), isNegative: integer < 0)
    }

    /// Appends a decimal integer. Not generic: the generic form is several times slower.
    @usableFromInline
    mutating func append(decimal magnitude: UInt64, isNegative: Bool) {
        if isNegative { append(ASCII.minus) }
        if magnitude < 10 { return append(ASCII.zero + UInt8(magnitude)) }
        withUnsafeTemporaryAllocation(byteCount: 20, alignment: 1) { digits in
            var (rest, start) = (magnitude, digits.count)
            repeat {
                start -= 1
                digits[start] = ASCII.zero + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            } while rest > 0
            append(contentsOf: UnsafeRawBufferPointer(rebasing: digits[start...]))
        }
    }

    /// Appends a finite number as ECMAScript prints it.
    package mutating func append(number: Double) {
        CanonicalNumber.withText(of: number) { append(contentsOf: $0) }
    }

    /// Appends the text as a JSON string, with the shortest escapes.
    package mutating func append(quoted text: String) {
        var text = text
        text.withUTF8 { append(quoted: Bytes($0)) }
    }

    /// Appends bytes of valid UTF-8 as a JSON string, with the shortest escapes.
    package mutating func append(quoted bytes: Bytes) {
        append(ASCII.quote)
        var start = 0
        for (index, byte) in bytes.enumerated()
        where byte < 0x20 || byte == ASCII.quote || byte == ASCII.backslash {
            append(contentsOf: bytes[start..<index])
            start = index + 1
            append(ASCII.backslash)
            switch byte {
            case ASCII.quote, ASCII.backslash: append(byte)
            case 0x08: append(UInt8(ascii: "b"))
            case 0x09: append(UInt8(ascii: "t"))
            case 0x0a: append(UInt8(ascii: "n"))
            case 0x0c: append(UInt8(ascii: "f"))
            case 0x0d: append(UInt8(ascii: "r"))
            default:
                append("u00")
                append(ASCII.hexDigit(UInt64(byte >> 4)))
                append(ASCII.hexDigit(UInt64(byte)))
            }
        }
        append(contentsOf: bytes[start...])
        append(ASCII.quote)
    }

    /// Appends the UUID of a site as a JSON string.
    package mutating func append(quoted site: Site) {
        append(ASCII.quote)
        site.write(to: &self)
        append(ASCII.quote)
    }
}
