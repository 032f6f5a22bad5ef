/// The classes of bytes of RFC 9110 and 9112.
enum HTTPCharacters {
    /// True for a `tchar`: a byte of a name, a method or a token.
    static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            true
        default: false
        }
    }

    /// True for a byte that a field's value may contain: visible bytes, blanks, and bytes from 0x80 on.
    static func isValue(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != 0x7F || byte == 0x09
    }

    /// True for a byte that a request target may contain: visible ASCII except `#`, which begins a fragment.
    static func isTarget(_ byte: UInt8) -> Bool {
        (0x21...0x7E).contains(byte) && byte != UInt8(ascii: "#")
    }

    /// True for a byte that a host with a port may contain: names, addresses, brackets, percent signs. The `@` after a
    /// user name is refused.
    static func isAuthority(_ byte: UInt8) -> Bool {
        isToken(byte) && byte != UInt8(ascii: "#") && byte != UInt8(ascii: "|") && byte != UInt8(ascii: "^")
            && byte != UInt8(ascii: "`")
            || [
                UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: "("), UInt8(ascii: ")"),
                UInt8(ascii: ";"), UInt8(ascii: "="),
            ].contains(byte)
    }

    /// Returns the byte, with a capital letter turned into the small one.
    static func lowercased(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }

    /// Returns the value of a hex digit; nil for any other byte.
    static func hex(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
