#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The order of a storage's keys: unsigned bytes, a prefix first.
enum KeyOrder {
    /// Returns true if the first key comes before the second one.
    static func precedes(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.withUnsafeBytes { left in right.withUnsafeBytes { precedes(left, $0) } }
    }

    /// Returns true if the first key comes before the second one.
    static func precedes(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
        guard let start = left.baseAddress, let other = right.baseAddress else { return left.count < right.count }
        let order = memcmp(start, other, min(left.count, right.count))
        return order == 0 ? left.count < right.count : order < 0
    }
}
