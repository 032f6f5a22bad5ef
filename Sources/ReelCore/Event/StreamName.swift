/// The name of a stream: 1 to 128 of `A-Z a-z 0-9 . _ : ~ -`, not only dots, and not with `~` as the first character.
public struct StreamName: Hashable, Sendable, Comparable, LosslessStringConvertible {
    /// The name as text. It is ASCII, so texts are equal exactly if their bytes are equal.
    public let description: String

    /// Creates the name; nil if it is invalid or reserved.
    public init?(_ text: String) {
        var name = text
        guard name.withUTF8({ StreamName.isValid(Bytes($0)) }) else { return nil }
        description = name
    }

    /// Creates the name; nil if it is invalid or reserved.
    public init?(bytes: Bytes) {
        guard StreamName.isValid(bytes) else { return nil }
        description = String(decoding: bytes, as: UTF8.self)
    }

    /// The maximum length of a name in bytes.
    public static let largest = 128

    /// The rule for names, for messages about an invalid name.
    public static let rule = "1 to \(largest) of A-Z a-z 0-9 . _ : ~ -, not of dots only, not with ~ in front"

    /// The key of barriers, which is not a valid stream name.
    public static let barrierKey = "~reel"

    /// True if these bytes are a valid name of a stream. Does not allocate.
    public static func isValid(_ bytes: Bytes) -> Bool {
        guard (1...largest).contains(bytes.count), bytes[0] != UInt8(ascii: "~") else { return false }
        var onlyDots = true
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                ASCII.zero...ASCII.nine, UInt8(ascii: "_"), ASCII.colon, UInt8(ascii: "~"), ASCII.minus:
                onlyDots = false
            case ASCII.point: break
            default: return false
            }
        }
        return !onlyDots
    }

    /// The bytes of the name, which are the key of the stream's records.
    public var key: [UInt8] { Array(description.utf8) }

    /// Returns the partition that contains all events of the stream.
    public func partition(of partitions: Int) -> Int {
        var name = description
        return name.withUTF8 { Partition.number(ofKey: Bytes($0), of: partitions) }
    }

    /// Orders names by their bytes.
    public static func < (a: StreamName, b: StreamName) -> Bool {
        a.description.utf8.lexicographicallyPrecedes(b.description.utf8)
    }
}
