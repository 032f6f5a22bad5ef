/// The FNV-1a hash, 64 bits (Fowler, Noll and Vo). It is small, gives the same result on every platform, and detects
/// faults, but not forgeries.
public struct FNV1a: Sendable {
    /// The hash of all bytes that were added.
    public private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

    /// Creates the hash of no bytes.
    public init() {}

    /// Adds bytes.
    @inline(__always)
    public mutating func add(_ bytes: Bytes) {
        for byte in bytes { add(byte) }
    }

    /// Adds one byte.
    @inline(__always)
    public mutating func add(_ byte: UInt8) {
        value = (value ^ UInt64(byte)) &* 0x0000_0100_0000_01b3
    }

    /// The hash after MurmurHash3's 64-bit finalizer (Austin Appleby). Sums of such hashes distinguish sets.
    public var finished: UInt64 {
        var x = value
        x ^= x >> 33
        x &*= 0xff51_afd7_ed55_8ccd
        x ^= x >> 33
        x &*= 0xc4ce_b9fe_1a85_ec53
        x ^= x >> 33
        return x
    }

    /// Returns the hash of a record: key, a zero byte, value.
    public static func record(key: Bytes, value: Bytes) -> UInt64 {
        var hash = FNV1a()
        hash.add(key)
        hash.add(0)
        hash.add(value)
        return hash.value
    }
}
