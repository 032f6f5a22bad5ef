/// One replica of a stream's data: a UUID in lower case. Sites are ordered by their bytes, which is also the order of
/// their texts.
public struct Site: Hashable, Sendable, Comparable {
    /// The first eight bytes of the UUID, big-endian.
    public let high: UInt64
    /// The last eight bytes of the UUID, big-endian.
    public let low: UInt64

    /// Creates the UUID of these two big-endian halves.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The nil UUID, which names nothing (RFC 9562, 5.9). No event has it as its site.
    public static let nobody = Site(high: 0, low: 0)

    /// True for a UUID of version 8 (RFC 9562, 5.8). A gateway makes such a site for the events of one request, and
    /// ends it with the last of them. The limit on the sites of a stream does not apply to it.
    public var isOneRequest: Bool { high & 0xf000 == 0x8000 && low >> 62 == 0b10 }

    /// Returns the UUID of version 8 with these bits, except for the six bits of version and variant.
    package static func oneRequest(high: UInt64, low: UInt64) -> Site {
        Site(high: high & ~0xf000 | 0x8000, low: low & ~(3 << 62) | 1 << 63)
    }

    /// Returns a new random site for the events of one request (UUID version 8).
    package static func randomOneRequest() -> Site {
        oneRequest(high: .random(in: .min ... .max), low: .random(in: .min ... .max))
    }

    /// Orders sites by their bytes.
    public static func < (a: Site, b: Site) -> Bool {
        a.high != b.high ? a.high < b.high : a.low < b.low
    }

    /// The length of a site's text in bytes: 32 digits and 4 hyphens.
    public static let textCount = 36

    /// Returns a new random site (UUID version 4).
    public static func random() -> Site {
        var generator = SystemRandomNumberGenerator()
        return random(using: &generator)
    }

    /// Returns a new site made from the numbers of `generator` (UUID version 4).
    public static func random(using generator: inout some RandomNumberGenerator) -> Site {
        let high = UInt64.random(in: .min ... .max, using: &generator)
        let low = UInt64.random(in: .min ... .max, using: &generator)
        return Site(high: high & ~0xf000 | 0x4000, low: low & ~(3 << 62) | 1 << 63)
    }
}

// MARK: Text

extension Site: LosslessStringConvertible {
    /// Creates the site from `8-4-4-4-12` lower-case hex digits; nil for any other text.
    public init?(_ text: String) {
        var text = text
        guard let site = text.withUTF8({ Site(bytes: Bytes($0)) }) else { return nil }
        self = site
    }

    /// Creates the site from `8-4-4-4-12` lower-case hex digits; nil for any other bytes.
    public init?(bytes: Bytes) {
        guard bytes.count == Site.textCount else { return nil }
        for index in [8, 13, 18, 23] where bytes[index] != ASCII.minus { return nil }
        func digits(_ first: Int, _ second: Int) -> UInt64? {
            ASCII.lowerHex(
                bytes.loadUnaligned(fromByteOffset: first, as: UInt32.self),
                bytes.loadUnaligned(fromByteOffset: second, as: UInt32.self)
            )
        }
        guard let a = digits(0, 4), let b = digits(9, 14), let c = digits(19, 24), let d = digits(28, 32) else {
            return nil
        }
        self.init(high: a << 32 | b, low: c << 32 | d)
    }

    /// Appends the text of 36 bytes, without quotes.
    public func write(to bytes: inout [UInt8]) {
        withUnsafeTemporaryAllocation(byteCount: Site.textCount, alignment: 1) { text in
            write(to: text)
            bytes.append(contentsOf: UnsafeRawBufferPointer(text))
        }
    }

    /// The text: 36 bytes, lower case.
    public var description: String {
        String(unsafeUninitializedCapacity: Site.textCount) { buffer in
            write(to: UnsafeMutableRawBufferPointer(buffer))
            return Site.textCount
        }
    }

    /// Writes eight digits at a time. A hyphen divides each of the two middle groups of eight.
    private func write(to text: UnsafeMutableRawBufferPointer) {
        func store(_ digits: UInt64, at first: Int, _ second: Int) {
            text.storeBytes(of: UInt32(digits >> 32).bigEndian, toByteOffset: first, as: UInt32.self)
            text.storeBytes(of: UInt32(digits & 0xffff_ffff).bigEndian, toByteOffset: second, as: UInt32.self)
        }
        store(ASCII.hexDigits(high >> 32), at: 0, 4)
        store(ASCII.hexDigits(high), at: 9, 14)
        store(ASCII.hexDigits(low >> 32), at: 19, 24)
        store(ASCII.hexDigits(low), at: 28, 32)
        for index in stride(from: 8, through: 23, by: 5) { text[index] = ASCII.minus }
    }
}
