#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The content of a JSON string between its quotes, with escapes; known to be valid.
///
/// Names are equal if their decoded UTF-8 bytes are equal. There is no normalisation, so this code never compares
/// `String` values.
public struct JSONText {
    /// The bytes between the quotes.
    public let raw: Bytes

    /// Creates a text of these bytes, which must have been validated.
    public init(_ raw: Bytes) {
        self.raw = raw
    }

    /// True if the text contains no escape, so that the decoded bytes equal the raw bytes.
    public var isPlain: Bool {
        raw.isEmpty || memchr(raw.baseAddress!, Int32(ASCII.backslash), raw.count) == nil
    }

    /// Appends the decoded UTF-8 bytes.
    public func decode(into bytes: inout [UInt8]) {
        if isPlain { return bytes.append(contentsOf: raw) }
        bytes.reserveCapacity(bytes.count + raw.count)
        var decoded = decoded
        while let byte = decoded.next() { bytes.append(byte) }
    }

    /// The decoded text.
    public var string: String {
        if isPlain { return String(decoding: raw, as: UTF8.self) }
        var bytes: [UInt8] = []
        decode(into: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The number of Unicode scalars of the text.
    public var scalarCount: Int {
        var count = 0
        if isPlain {
            for byte in raw where byte & 0xc0 != 0x80 { count += 1 }
        } else {
            for byte in IteratorSequence(decoded) where byte & 0xc0 != 0x80 { count += 1 }
        }
        return count
    }

    /// The decoded UTF-8 bytes as an iterator.
    public var decoded: Decoded { Decoded(raw: raw) }

    /// Returns a hash of the decoded bytes; the hash has a random seed in each process. `buffer` is reused for
    /// decoding.
    func hash(_ buffer: inout [UInt8]) -> Int {
        var hasher = Hasher()
        if isPlain {
            hasher.combine(bytes: raw)
        } else {
            buffer.removeAll(keepingCapacity: true)
            decode(into: &buffer)
            buffer.withUnsafeBytes { hasher.combine(bytes: $0) }
        }
        return hasher.finalize()
    }

    /// Returns the order of the decoded bytes: less than, equal to or greater than zero.
    public func order(_ other: JSONText) -> Int {
        if isPlain, other.isPlain { return raw.order(other.raw) }
        var (mine, theirs) = (decoded, other.decoded)
        while true {
            switch (mine.next(), theirs.next()) {
            case (nil, nil): return 0
            case (nil, _): return -1
            case (_, nil): return 1
            case (let a?, let b?): if a != b { return Int(a) - Int(b) }
            }
        }
    }

    /// Returns the order of canonical JSON's members by UTF-16 code units: less than, equal to or greater than zero.
    ///
    /// It is the order of the bytes with one exception: characters that need surrogates (first byte F0 or greater)
    /// precede U+E000 to U+FFFF (first byte EE or EF).
    func memberOrder(_ other: JSONText) -> Int {
        if isPlain, other.isPlain {
            guard let index = zip(raw, other.raw).enumerated().first(where: { $1.0 != $1.1 })?.offset else {
                return raw.count - other.raw.count
            }
            return JSONText.unitOrder(raw[index], other.raw[index])
        }
        var (mine, theirs) = (decoded, other.decoded)
        while true {
            switch (mine.next(), theirs.next()) {
            case (nil, nil): return 0
            case (nil, _): return -1
            case (_, nil): return 1
            case (let a?, let b?): if a != b { return JSONText.unitOrder(a, b) }
            }
        }
    }

    /// Returns the order by UTF-16 code units of two texts; `a` and `b` are the first bytes in which they differ.
    private static func unitOrder(_ a: UInt8, _ b: UInt8) -> Int {
        let order = Int(a) - Int(b)
        return a >= 0xee && b >= 0xee && (a >= 0xf0) != (b >= 0xf0) ? -order : order
    }
}

extension JSONText {
    /// Iterates over the decoded bytes of a text. Decodes every escape of JSON, including those that canonical JSON
    /// does not use.
    public struct Decoded: IteratorProtocol {
        let raw: Bytes
        private var position = 0
        /// The remaining bytes of an escaped scalar; the next byte is the lowest.
        private var waiting: UInt32 = 0
        private var waitingCount = 0

        init(raw: Bytes) {
            self.raw = raw
        }

        /// Returns the next byte.
        public mutating func next() -> UInt8? {
            if waitingCount > 0 {
                defer { (waiting, waitingCount) = (waiting >> 8, waitingCount - 1) }
                return UInt8(truncatingIfNeeded: waiting)
            }
            guard position < raw.count else { return nil }
            let byte = raw[position]
            position += 1
            guard byte == ASCII.backslash, position < raw.count else { return byte }
            let escape = raw[position]
            position += 1
            guard escape == UInt8(ascii: "u") else { return JSONText.escaped(escape) ?? escape }
            var scalar = unit()
            if scalar < 0x80 { return UInt8(scalar) }
            if scalar & 0xfc00 == 0xd800, position + 6 <= raw.count {
                position += 2
                scalar = 0x10000 + (scalar & 0x3ff) << 10 + unit() & 0x3ff
            }
            for byte in Unicode.Scalar(scalar).map({ UTF8.encode($0)! }) ?? UTF8.encodedReplacementCharacter {
                waiting |= UInt32(byte) << UInt32(8 * waitingCount)
                waitingCount += 1
            }
            return next()
        }

        /// Reads four hex digits that were validated. The low four bits of a letter are its value minus nine.
        @inline(__always)
        private mutating func unit() -> UInt32 {
            var value: UInt32 = 0
            for _ in 0..<4 where position < raw.count {
                let digit = raw[position]
                value = value << 4 | UInt32(digit & 0x0f &+ 9 &* (digit >> 6)) & 0x0f
                position += 1
            }
            return value
        }
    }

    /// Returns the byte that a short escape represents; nil if there is no such escape.
    /// - Parameter byte: the byte after the backslash.
    static func escaped(_ byte: UInt8) -> UInt8? {
        switch byte {
        case ASCII.quote, ASCII.backslash, UInt8(ascii: "/"): byte
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "t"): 0x09
        case UInt8(ascii: "n"): 0x0a
        case UInt8(ascii: "f"): 0x0c
        case UInt8(ascii: "r"): 0x0d
        default: nil
        }
    }

    /// Returns the value of a hex digit in upper or lower case.
    static func hexDigit(_ byte: UInt8) -> UInt64? {
        ASCII.lowerHex(byte) ?? (UInt8(ascii: "A")...UInt8(ascii: "F") ~= byte ? UInt64(byte - 55) : nil)
    }

    /// Returns the length of the valid UTF-8 sequence at `base`, which encodes a scalar beyond ASCII; 0 if there is
    /// none.
    /// - Parameter left: the number of bytes that can be read.
    @inline(__always)
    static func scalarLength(_ base: UnsafePointer<UInt8>, _ left: Int) -> Int {
        func follows(_ index: Int) -> Bool { base[index] & 0xc0 == 0x80 }
        let first = base[0]
        switch first {
        case 0xc2...0xdf:
            return left >= 2 && follows(1) ? 2 : 0
        case 0xe0...0xef:
            guard left >= 3, follows(1), follows(2) else { return 0 }
            if first == 0xe0 && base[1] < 0xa0 || first == 0xed && base[1] >= 0xa0 { return 0 }
            return 3
        case 0xf0...0xf4:
            guard left >= 4, follows(1), follows(2), follows(3) else { return 0 }
            if first == 0xf0 && base[1] < 0x90 || first == 0xf4 && base[1] >= 0x90 { return 0 }
            return 4
        default:
            return 0
        }
    }

    /// Marks the bytes of a word that need attention in a string: quotes, backslashes, controls, and bytes beyond
    /// ASCII. The lowest mark is exact; marks above it may be false.
    @inline(__always)
    static func special(_ word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let quotes = word ^ ones &* 0x22
        let backslashes = word ^ ones &* 0x5c
        let marks = (word &- ones &* 0x20) | (quotes &- ones) | (backslashes &- ones) | word
        return marks & (ones &* 0x80)
    }
}
