#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// Borrowed bytes: the key or value of a record, a frame, a line. Valid only while the owner of the memory lends them.
public typealias Bytes = UnsafeRawBufferPointer

extension Bytes {
    /// The bytes of a slice of this record's value.
    public subscript(slice: Slice) -> Bytes {
        Bytes(rebasing: self[Int(slice.start)..<Int(slice.start) + Int(slice.count)])
    }

    /// True if the bytes are equal.
    public func equals(_ other: Bytes) -> Bool {
        guard count == other.count else { return false }
        guard let mine = baseAddress, let theirs = other.baseAddress else { return true }
        return memcmp(mine, theirs, count) == 0
    }

    /// True if the bytes are those of the text. Allows `case "name":` in a switch over bytes.
    @inline(__always)
    public static func ~= (name: StaticString, bytes: Bytes) -> Bool {
        bytes.count == name.utf8CodeUnitCount
            && (bytes.isEmpty || memcmp(bytes.baseAddress!, name.utf8Start, name.utf8CodeUnitCount) == 0)
    }

    /// Returns the lexicographic order of the bytes: less than, equal to or greater than zero.
    public func order(_ other: Bytes) -> Int {
        let shared = Swift.min(count, other.count)
        if shared > 0 {
            let order = memcmp(baseAddress!, other.baseAddress!, shared)
            if order != 0 { return Int(order) }
        }
        return count - other.count
    }
}

/// The characters of JSON's syntax.
enum ASCII {
    static let quote = UInt8(ascii: "\"")
    static let backslash = UInt8(ascii: "\\")
    static let comma = UInt8(ascii: ",")
    static let colon = UInt8(ascii: ":")
    static let minus = UInt8(ascii: "-")
    static let point = UInt8(ascii: ".")
    static let zero = UInt8(ascii: "0")
    static let nine = UInt8(ascii: "9")
    static let openBrace = UInt8(ascii: "{")
    static let closeBrace = UInt8(ascii: "}")
    static let openBracket = UInt8(ascii: "[")
    static let closeBracket = UInt8(ascii: "]")

    /// Returns the value of a decimal digit; nil for any other byte.
    @inline(__always)
    static func digit(_ byte: UInt8) -> Int64? {
        byte &- zero < 10 ? Int64(byte &- zero) : nil
    }

    /// Returns the value of a lower-case hex digit; nil for any other byte.
    @inline(__always)
    static func lowerHex(_ byte: UInt8) -> UInt64? {
        switch byte {
        case zero...nine: UInt64(byte - zero)
        case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt64(byte - UInt8(ascii: "a") + 10)
        default: nil
        }
    }

    /// Returns the value of eight lower-case hex digits, given as two words of four bytes in memory order; nil for
    /// other bytes. Processes all digits in parallel, one in each byte of a 64-bit word.
    @inline(__always)
    static func lowerHex(_ first: UInt32, _ second: UInt32) -> UInt64? {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let text = UInt64(UInt32(littleEndian: first)) | UInt64(UInt32(littleEndian: second)) << 32
        // Digits are 0x30 to 0x39, letters 0x61 to 0x66.
        let letters = text >> 6 & ones
        let low = text & (ones &* 0x0f)
        let isTooHigh = (low &+ ones &* 6 &+ letters &* 3) & (ones &* 0x10)
        let isTooLow = (letters &* 0x10) & ~(low &+ ones &* 0x0f)
        guard text & (ones &* 0xf0) == ones &* 0x30 &+ letters &* 0x30, isTooHigh | isTooLow == 0 else { return nil }
        var value = (low &+ letters &* 9).byteSwapped
        value = (value | value >> 4) & 0x00ff_00ff_00ff_00ff
        value = (value | value >> 8) & 0x0000_ffff_0000_ffff
        return (value | value >> 16) & 0xffff_ffff
    }

    /// Returns the eight lower-case hex digits of a number; the first digit is in the highest byte.
    @inline(__always)
    static func hexDigits(_ number: UInt64) -> UInt64 {
        var value = number & 0xffff_ffff
        value = (value | value << 16) & 0x0000_ffff_0000_ffff
        value = (value | value << 8) & 0x00ff_00ff_00ff_00ff
        value = (value | value << 4) & 0x0f0f_0f0f_0f0f_0f0f
        let ones: UInt64 = 0x0101_0101_0101_0101
        let letters = (value &+ ones &* 6) >> 4 & ones
        return value &+ ones &* 0x30 &+ letters &* 0x27
    }

    /// Returns the lower-case hex digit of the low four bits.
    @inline(__always)
    static func hexDigit(_ value: UInt64) -> UInt8 {
        let low = UInt8(truncatingIfNeeded: value & 15)
        return low < 10 ? zero + low : UInt8(ascii: "a") + low - 10
    }
}
