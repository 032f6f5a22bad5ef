#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The orders of names (model, id, field) in the escaped form of canonical JSON, without quotes. A name has no control
/// characters, so the only escapes are `\"` and `\\`. The byte after the backslash is the decoded byte.
enum NameOrder {
    /// Returns the order of the decoded bytes: less than, equal to or greater than zero.
    static func bytes(_ a: Bytes, _ b: Bytes) -> Int {
        compare(a, b) { Int($0) }
    }

    /// Returns the order of canonical JSON's members, which is by UTF-16 code units. It is the order of the bytes with
    /// one exception. Characters that need surrogates (first byte F0 or greater) precede U+E000 to U+FFFF (first byte
    /// EE or EF).
    static func members(_ a: Bytes, _ b: Bytes) -> Int {
        compare(a, b) { $0 < 0xEE ? Int($0) : $0 < 0xF0 ? Int($0) + 0x100 : Int($0) }
    }

    @inline(__always)
    private static func compare(_ a: Bytes, _ b: Bytes, rank: (UInt8) -> Int) -> Int {
        let shared = min(a.count, b.count)
        var i = 0
        while i < shared, a[i] == b[i] { i += 1 }
        guard i < shared else { return a.count - b.count }
        return rank(decodedByte(a, i)) - rank(decodedByte(b, i))
    }

    /// Returns the decoded byte at the first difference. All bytes before it are equal. A backslash at this position
    /// therefore begins an escape in only one of the names. If it is itself escaped, it is so in both names, and then
    /// it is no difference.
    @inline(__always)
    private static func decodedByte(_ name: Bytes, _ i: Int) -> UInt8 {
        let isEscaped = i > 0 && name[i - 1] == ASCII.backslash && !isEscape(name, i - 1)
        if name[i] == ASCII.backslash, !isEscaped, i + 1 < name.count { return name[i + 1] }
        return name[i]
    }

    /// True if the backslash at `i` is itself escaped.
    private static func isEscape(_ name: Bytes, _ i: Int) -> Bool {
        var count = 0
        while i - count > 0, name[i - count - 1] == ASCII.backslash { count += 1 }
        return count % 2 == 1
    }
}
