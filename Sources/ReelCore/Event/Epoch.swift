/// The identity of a log: 64 random bits, written as 16 lower-case hex digits. `(epoch, seq)` travel together.
public struct Epoch: Hashable, Sendable {
    /// The 64 bits.
    public let value: UInt64

    /// The epoch of these bits.
    public init(_ value: UInt64) {
        self.value = value
    }

    /// A new random epoch.
    public static func random() -> Epoch {
        Epoch(UInt64.random(in: .min ... .max))
    }
}

extension Epoch: CustomStringConvertible {
    /// The epoch of 16 lower-case hex digits; nil for any other text.
    public init?(_ text: String) {
        guard let value = Hex64.parse(text) else { return nil }
        self.init(value)
    }

    /// The epoch of 16 lower-case hex digits; nil for any other bytes.
    public init?(bytes: Bytes) {
        guard let value = Hex64.parse(bytes) else { return nil }
        self.init(value)
    }

    /// The text: 16 lower-case hex digits.
    public var description: String { Hex64.text(value) }
}

/// 64 bits as 16 lower-case hex digits: an epoch, a digest, a record's hash.
public enum Hex64 {
    /// The number of 16 lower-case hex digits; nil for any other bytes.
    public static func parse(_ bytes: Bytes) -> UInt64? {
        guard bytes.count == 16 else { return nil }
        var value: UInt64 = 0
        for byte in bytes {
            guard let digit = ASCII.lowerHex(byte) else { return nil }
            value = value << 4 | digit
        }
        return value
    }

    /// The number of 16 lower-case hex digits; nil for any other text.
    public static func parse(_ text: String) -> UInt64? {
        var text = text
        return text.withUTF8 { parse(Bytes($0)) }
    }

    /// The 16 digits of a number.
    public static func text(_ value: UInt64) -> String {
        String(unsafeUninitializedCapacity: 16) { buffer in
            for index in 0..<16 { buffer[index] = ASCII.hexDigit(value >> UInt64(60 - 4 * index)) }
            return 16
        }
    }
}
