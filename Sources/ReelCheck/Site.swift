/// A site: a UUID in lower case. Its order is that of its text.
struct Site: Hashable, Comparable, Sendable {
    let high: UInt64
    let low: UInt64

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Reads `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`; nil for anything else.
    init?(_ text: Text) {
        guard text.bytes.count == 36 else { return nil }
        var halves: [UInt64] = [0, 0]
        var digits = 0
        for (index, byte) in text.bytes.enumerated() {
            if [8, 13, 18, 23].contains(index) {
                guard byte == UInt8(ascii: "-") else { return nil }
            } else {
                guard let digit = hexDigit(byte) else { return nil }
                halves[digits / 16] = halves[digits / 16] << 4 | UInt64(digit)
                digits += 1
            }
        }
        self.init(high: halves[0], low: halves[1])
    }

    var text: Text {
        Text(
            [
                hex(high >> 32, digits: 8), hex(high >> 16, digits: 4), hex(high, digits: 4),
                hex(low >> 48, digits: 4), hex(low, digits: 12),
            ].joined(separator: "-")
        )
    }

    static func < (a: Site, b: Site) -> Bool {
        (a.high, a.low) < (b.high, b.low)
    }
}

/// Who did something, and when: the seq of an event and its site.
struct Stamp: Hashable, Comparable, Sendable {
    let seq: Int64
    let site: Site

    static func < (a: Stamp, b: Stamp) -> Bool {
        (a.seq, a.site) < (b.seq, b.site)
    }
}
