/// A site: a UUID in lower case, ordered as its text.
struct Site: Hashable, Comparable, Sendable {
    let high: UInt64
    let low: UInt64

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The nil UUID, for changes with an author that no longer matters.
    static let nobody = Site(high: 0, low: 0)

    /// Reads `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`; nil for any other text.
    init?(_ text: Text) {
        guard text.bytes.count == 36 else { return nil }
        var (high, low): (UInt64, UInt64) = (0, 0)
        for index in 0..<36 {
            let byte = text.bytes[index]
            switch index {
            case 8, 13, 18, 23:
                guard byte == UInt8(ascii: "-") else { return nil }
            default:
                guard let digit = hexDigit(byte) else { return nil }
                if index < 18 { high = high << 4 | UInt64(digit) } else { low = low << 4 | UInt64(digit) }
            }
        }
        self.init(high: high, low: low)
    }

    var text: Text {
        Text(
            [
                hex(high >> 32, digits: 8), hex(high >> 16, digits: 4), hex(high, digits: 4),
                hex(low >> 48, digits: 4), hex(low, digits: 12),
            ].joined(separator: "-")
        )
    }

    /// True for a UUID of version 8: the third group begins with 8, and the fourth with 8, 9, a or b.
    var isOneRequest: Bool {
        (high >> 12) % 16 == 8 && (8...11).contains(low >> 60)
    }

    static func < (a: Site, b: Site) -> Bool {
        (a.high, a.low) < (b.high, b.low)
    }
}

/// The author and the time of a change: the site and the seq of an event.
struct Stamp: Hashable, Comparable, Sendable {
    let seq: Int64
    let site: Site

    static func < (a: Stamp, b: Stamp) -> Bool {
        (a.seq, a.site) < (b.seq, b.site)
    }
}
