import Glibc

/// The orders of names (model, id, field) as they stand between the quotes of canonical JSON. A name has no control
/// characters, so the only escapes are `\"` and `\\`: what follows the backslash stands for itself.
enum NameOrder {
    /// The order of the decoded bytes: less than, equal or greater than zero.
    static func bytes(_ a: Bytes, _ b: Bytes) -> Int {
        compare(a, b) { Int($0) }
    }

    /// The order of canonical JSON's members, by UTF-16 code units: that of the bytes, but what needs surrogates (a
    /// first byte of F0 and up) comes before U+E000 to U+FFFF (EE and EF).
    static func members(_ a: Bytes, _ b: Bytes) -> Int {
        compare(a, b) { $0 < 0xEE ? Int($0) : $0 < 0xF0 ? Int($0) + 0x100 : Int($0) }
    }

    @inline(__always)
    private static func compare(_ a: Bytes, _ b: Bytes, rank: (UInt8) -> Int) -> Int {
        let shared = min(a.count, b.count)
        var i = 0
        while i < shared, a[i] == b[i] { i += 1 }
        guard i < shared else { return a.count - b.count }
        return rank(plain(a, i)) - rank(plain(b, i))
    }

    /// The decoded byte at the first difference: behind equal bytes, a backslash begins an escape in one of both only,
    /// or else is escaped itself in both and so no difference.
    @inline(__always)
    private static func plain(_ name: Bytes, _ i: Int) -> UInt8 {
        let isEscaped = i > 0 && name[i - 1] == ASCII.backslash && !isEscape(name, i - 1)
        if name[i] == ASCII.backslash, !isEscaped, i + 1 < name.count { return name[i + 1] }
        return name[i]
    }

    /// Whether the backslash at `i` is itself escaped.
    private static func isEscape(_ name: Bytes, _ i: Int) -> Bool {
        var count = 0
        while i - count > 0, name[i - count - 1] == ASCII.backslash { count += 1 }
        return count % 2 == 1
    }
}
