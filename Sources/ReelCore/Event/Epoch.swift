/// The identity of a log: 64 random bits, written as 16 lower-case hex digits. `(epoch, seq)` travel together.
public struct Epoch: Hashable, Sendable {
    /// The 64 bits.
    public let value: UInt64

    /// The epoch of these bits.
    public init(_ value: UInt64) {
        self.value = value
    }
}
