/// A text as its UTF-8 bytes: equal if the bytes are, ordered by the bytes. Swift's own strings call texts equal that
/// only look alike; the log never does.
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
    /// The name of a model, an object, a field or an author: 1 to 128 bytes without control characters.
    var isName: Bool {
        (1...128).contains(bytes.count) && bytes.allSatisfy { $0 >= 0x20 }
    }

    /// The name of a stream that anybody may write: 1 to 128 of `A-Za-z0-9._:~-`, not `~` first, not dots only.
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

    /// Sixteen lower-case hex digits.
    var isEpoch: Bool {
        bytes.count == 16 && bytes.allSatisfy { hexDigit($0) != nil }
    }
}

/// The value of a lower-case hex digit.
func hexDigit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    default: nil
    }
}

/// The `count` lowest hex digits of a number, lower case.
func hex(_ number: UInt64, digits count: Int) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: max(0, count - digits.count)) + digits.suffix(count)
}
