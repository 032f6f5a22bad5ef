/// The identity of a deployment, which all its logs share: 64 bits, written as 16 lower-case hex digits.
///
/// It is the epoch of the deployment's first log. Each later log carries it on, so that a device can tell the next log
/// of its own deployment from a log of another one.
public struct Deployment: Hashable, Sendable {
    /// The 64 bits.
    public let value: UInt64

    /// The deployment of these bits.
    public init(_ value: UInt64) {
        self.value = value
    }

    /// The deployment whose first log has this epoch. A log that was made by an older build names no deployment: its
    /// own epoch stands for it, on every node and after every start.
    public init(beginningWith epoch: Epoch) {
        value = epoch.value
    }
}

extension Deployment: CustomStringConvertible {
    /// The deployment of 16 lower-case hex digits; nil for any other text.
    public init?(_ text: String) {
        guard let value = Hex64.parse(text) else { return nil }
        self.init(value)
    }

    /// The text: 16 lower-case hex digits.
    public var description: String { Hex64.text(value) }
}
