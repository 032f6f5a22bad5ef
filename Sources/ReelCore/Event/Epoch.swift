/// The identifier of a log: 64 random bits, written as 16 lower-case hex digits. A seq is always transferred together
/// with its epoch.
public struct Epoch: Hashable, Sendable {
    /// The 64 bits.
    public let value: UInt64

    /// Creates the epoch with these bits.
    public init(_ value: UInt64) {
        self.value = value
    }

    /// Returns a new random epoch.
    public static func random() -> Epoch {
        Epoch(UInt64.random(in: .min ... .max))
    }
}

extension Epoch: CustomStringConvertible {
    /// Creates the epoch from 16 lower-case hex digits; nil for any other text.
    public init?(_ text: String) {
        guard let value = Hex64.parse(text) else { return nil }
        self.init(value)
    }

    /// Creates the epoch from 16 lower-case hex digits; nil for any other bytes.
    public init?(bytes: Bytes) {
        guard let value = Hex64.parse(bytes) else { return nil }
        self.init(value)
    }

    /// The text: 16 lower-case hex digits.
    public var description: String { Hex64.text(value) }
}

/// The text form of 64 bits as 16 lower-case hex digits, for epochs, digests and hashes of records.
public enum Hex64 {
    /// Returns the number of 16 lower-case hex digits; nil for any other bytes.
    public static func parse(_ bytes: Bytes) -> UInt64? {
        guard bytes.count == 16 else { return nil }
        var value: UInt64 = 0
        for byte in bytes {
            guard let digit = ASCII.lowerHex(byte) else { return nil }
            value = value << 4 | digit
        }
        return value
    }

    /// Returns the number of 16 lower-case hex digits; nil for any other text.
    public static func parse(_ text: String) -> UInt64? {
        var text = text
        return text.withUTF8 { parse(Bytes($0)) }
    }

    /// Returns the 16 digits of a number.
    public static func text(_ value: UInt64) -> String {
        String(unsafeUninitializedCapacity: 16) { buffer in
            for index in 0..<16 { buffer[index] = ASCII.hexDigit(value >> UInt64(60 - 4 * index)) }
            return 16
        }
    }
}
