/// The name of a stream: 1 to 128 of `A-Z a-z 0-9 . _ : ~ -`, not of dots only, not with `~` in front.
public struct StreamName: Hashable, Sendable, Comparable, LosslessStringConvertible {
    /// The name as text; ASCII, so texts are equal exactly if their bytes are.
    public let description: String

    /// The stream of this name; nil if the name is not valid or reserved.
    public init?(_ text: String) {
        var name = text
        guard name.withUTF8({ StreamName.isValid(Bytes($0)) }) else { return nil }
        description = name
    }

    /// The stream of this name; nil if the name is not valid or reserved.
    public init?(bytes: Bytes) {
        guard StreamName.isValid(bytes) else { return nil }
        description = String(decoding: bytes, as: UTF8.self)
    }

    /// The longest name, in bytes.
    public static let largest = 128

    /// What a name must be, for whoever is told that a text is none.
    public static let rule = "1 to \(largest) of A-Z a-z 0-9 . _ : ~ -, not of dots only, not with ~ in front"

    /// The key of barriers, no stream's name.
    public static let barrierKey = "~reel"

    /// Whether these bytes are a stream's name. Allocates nothing.
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

    /// The bytes of the name: the key of the stream's records.
    public var key: [UInt8] { Array(description.utf8) }

    /// The partition that all events of the stream lie in.
    public func partition(of partitions: Int) -> Int {
        var name = description
        return name.withUTF8 { Partition.number(ofKey: Bytes($0), of: partitions) }
    }

    /// By the bytes.
    public static func < (a: StreamName, b: StreamName) -> Bool {
        a.description.utf8.lexicographicallyPrecedes(b.description.utf8)
    }
}
