/// A text as its UTF-8 bytes: equality and order are those of the bytes. Swift's own strings are equal if they are
/// canonically equivalent, which the log never uses.
struct Text: Hashable, Comparable, Sendable {
    let bytes: [UInt8]

    init(_ bytes: some Sequence<UInt8>) {
        self.bytes = Array(bytes)
    }

    init(_ string: String) {
        self.init(string.utf8)
    }

    var string: String { String(decoding: bytes, as: UTF8.self) }

    static func < (a: Text, b: Text) -> Bool {
        a.bytes.lexicographicallyPrecedes(b.bytes)
    }
}

extension Text {
    /// True for a valid name of a model, an object, a field or an author: 1 to 128 bytes without control characters.
    var isName: Bool {
        (1...128).contains(bytes.count) && bytes.allSatisfy { $0 >= 0x20 }
    }

    /// True for a valid name of a stream: 1 to 128 of `A-Za-z0-9._:~-`, not `~` first, and not only dots.
    var isStreamName: Bool {
        func isAllowed(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: ":"),
                UInt8(ascii: "~"), UInt8(ascii: "-"):
                true
            default: false
            }
        }
        return (1...128).contains(bytes.count)
            && bytes.allSatisfy(isAllowed)
            && bytes.first != UInt8(ascii: "~")
            && !bytes.allSatisfy { $0 == UInt8(ascii: ".") }
    }

    /// True for sixteen lower-case hex digits.
    var isEpoch: Bool {
        bytes.count == 16 && bytes.allSatisfy { hexDigit($0) != nil }
    }
}

/// Returns the value of a lower-case hex digit; nil for any other byte.
func hexDigit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    default: nil
    }
}

/// Returns the `count` lowest hex digits of a number in lower case.
func hex(_ number: UInt64, digits count: Int) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: max(0, count - digits.count)) + digits.suffix(count)
}
