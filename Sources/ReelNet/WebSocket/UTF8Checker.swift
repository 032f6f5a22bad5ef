/// A validator of UTF-8 that takes bytes in pieces of any size. It refuses overlong forms, surrogates, and values
/// beyond U+10FFFF.
struct UTF8Checker {
    private var needed: UInt8 = 0
    private var low: UInt8 = 0x80
    private var high: UInt8 = 0xBF

    /// True if the bytes that were checked end with a complete character.
    var isComplete: Bool { needed == 0 }

    /// Checks further bytes. Returns false as soon as no continuation could make the text valid.
    mutating func check(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var index = 0
        while index < bytes.count {
            if needed == 0, index + 8 <= bytes.count,
                bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
            {
                index += 8
                continue
            }
            guard step(bytes[index]) else { return false }
            index += 1
        }
        return true
    }

    private mutating func step(_ byte: UInt8) -> Bool {
        if needed > 0 {
            guard (low...high).contains(byte) else { return false }
            needed -= 1
            (low, high) = (0x80, 0xBF)
            return true
        }
        switch byte {
        case 0x00...0x7F: return true
        case 0xC2...0xDF: needed = 1
        case 0xE0: (needed, low) = (2, 0xA0)
        case 0xED: (needed, high) = (2, 0x9F)
        case 0xE1...0xEF: needed = 2
        case 0xF0: (needed, low) = (3, 0x90)
        case 0xF4: (needed, high) = (3, 0x8F)
        case 0xF1...0xF3: needed = 3
        default: return false
        }
        return true
    }
}
