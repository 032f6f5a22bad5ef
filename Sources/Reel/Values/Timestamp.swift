internal import ReelBase
public import ReelClient

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A moment, in milliseconds since 1970 (UTC). It is stored as a number.
///
/// `ReelFoundation` converts it from and to `Date`.
public struct Timestamp: Hashable, Sendable, Codable {
    /// The milliseconds since the beginning of 1970 (UTC). Negative before.
    public var ms: Int

    /// Creates a moment.
    public init(ms: Int) { self.ms = ms }

    /// The present moment by the clock of the device.
    public static var now: Timestamp { Timestamp(ms: Int(WallClock.nowMs())) }
}

extension Timestamp: Comparable {
    /// Returns true if `a` is before `b`.
    public static func < (a: Timestamp, b: Timestamp) -> Bool { a.ms < b.ms }
}

extension Timestamp: FieldValue {
    /// Creates the moment of a number.
    public init?(json: JSONValue) throws(FieldValueError) {
        guard let ms = try Int(json: json) else { return nil }
        self.init(ms: ms)
    }

    /// Returns the milliseconds as a number.
    ///
    /// - Throws: `FieldValueError` for a moment more than 2^53 milliseconds away from 1970.
    public func json() throws(FieldValueError) -> JSONValue { try ms.json() }
}
