/// One client replica: a UUID, written in lower case. Ordered as its bytes, which is also the order of its text.
public struct Site: Hashable, Sendable, Comparable {
    /// The first eight bytes of the UUID, big-endian.
    public let high: UInt64
    /// The last eight bytes of the UUID, big-endian.
    public let low: UInt64

    /// The UUID of these sixteen bytes, big-endian halves.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    public static func < (a: Site, b: Site) -> Bool {
        a.high != b.high ? a.high < b.high : a.low < b.low
    }
}
